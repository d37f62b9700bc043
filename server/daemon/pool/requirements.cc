#include "server/daemon/pool/requirements.h"

#include <sstream>
#include <string_view>

#include "base/memory_sizes.h"
#include "base/printable.h"
#include "wire/duration.h"
#include "wire/number.h"
#include "wire/open.h"

namespace longwire::daemon {
namespace {

constexpr size_t kLabels = 16;
constexpr size_t kLongestPart = 64;
constexpr const char* kLetters =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";

// "40GiB", "512MiB".
bool ReadSize(std::string_view text, uint64_t* bytes) {
  constexpr std::pair<std::string_view, int> kUnits[] = {{"MiB", 20}, {"GiB", 30}, {"TiB", 40}};
  for (const auto& [unit, shift] : kUnits) {
    if (!text.ends_with(unit)) continue;
    auto number = wire::ParseNumber(text.substr(0, text.size() - unit.size()), 1,
                                    static_cast<int64_t>(base::kMaxMemoryBytes >> shift));
    if (!number) return false;
    *bytes = static_cast<uint64_t>(*number) << shift;
    return true;
  }
  return false;
}

bool IsPart(std::string_view text) {
  return !text.empty() && text.size() <= kLongestPart &&
         text.find_first_not_of(kLetters) == std::string_view::npos;
}

bool ReadLabels(const std::string& text, std::map<std::string, std::string>* labels) {
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ',');) {
    const size_t sign = word.find('=');
    if (sign == std::string::npos || !IsPart(std::string_view(word).substr(0, sign)) ||
        !IsPart(std::string_view(word).substr(sign + 1)) || labels->size() == kLabels ||
        !labels->emplace(word.substr(0, sign), word.substr(sign + 1)).second) {
      return false;
    }
  }
  return true;
}

}  // namespace

bool ReadRequirements(const std::vector<std::string>& environment, Requirements* requirements,
                      std::string* sentence) {
  for (const std::string& variable : environment) {
    const size_t sign = variable.find('=');
    const std::string name = variable.substr(0, sign);
    const std::string value = sign == std::string::npos ? "" : variable.substr(sign + 1);
    if (name == "LONGWIRE_MEMORY" && !ReadSize(value, &requirements->bytes)) {
      *sentence = "LONGWIRE_MEMORY is '" + base::Printable(value) +
                  "'; it has to be a size such as 512MiB or 40GiB";
      return false;
    }
    if (name == "LONGWIRE_LABELS" && !ReadLabels(value, &requirements->labels)) {
      *sentence = "LONGWIRE_LABELS is '" + base::Printable(value) +
                  "'; it has to be a list such as gpu=h200,zone=a, each name once";
      return false;
    }
    if (name == "LONGWIRE_TIME_LIMIT") {
      auto seconds = wire::ParseDuration(value, wire::kLongestWaitSeconds);
      *sentence = "LONGWIRE_TIME_LIMIT is '" + base::Printable(value) +
                  "'; it has to be a duration such as 90s, 30m, 2h or 1d, at most 30d";
      if (!seconds) return false;
      requirements->time_limit = static_cast<uint64_t>(*seconds);
    }
    if (name == "LONGWIRE_PROGRAM_ID") {
      *sentence = "LONGWIRE_PROGRAM_ID is '" + base::Printable(value) +
                  "'; it has to be of letters and digits, at most 64";
      if (!IsPart(value)) return false;
      requirements->program_id = value;
    }
    if (name == "LONGWIRE_WAIT") requirements->waits = true;
    if (variable == wire::kWaitsByDefault) requirements->waits_by_default = true;
  }
  return true;
}

}  // namespace longwire::daemon
