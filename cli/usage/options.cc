#include "cli/usage/options.h"

#include <cstdio>
#include <ctime>
#include <utility>

#include "cli/options.h"
#include "wire/number.h"

namespace longwire::cli::usage {
namespace {

constexpr int64_t kSecond = 1'000'000;
constexpr int64_t kLongestAgo = 36500;  // in any unit: sums stay far from an overflow

bool ParseAgo(const std::string& text, int64_t now, int64_t* time) {
  static constexpr std::pair<const char*, int64_t> kUnits[] = {
      {"s", 1}, {"min", 60}, {"h", 3600}, {"d", 86400}, {"w", 604800}};
  const size_t digits = text.find_first_not_of("0123456789");
  if (digits == 0 || digits == std::string::npos) return false;
  auto count = wire::ParseNumber(text.substr(0, digits), 0, kLongestAgo);
  for (const auto& [unit, seconds] : kUnits) {
    if (!count || text.substr(digits) != unit) continue;
    *time = now - *count * seconds * kSecond;
    return true;
  }
  return false;
}

// True if the rest of the text is a fraction of a second or nothing, and then Z or nothing.
bool ParseFraction(const char* rest, int64_t* microseconds) {
  *microseconds = 0;
  if (*rest == '.') {
    int64_t unit = kSecond / 10;
    if (rest[1] < '0' || rest[1] > '9') return false;
    for (++rest; *rest >= '0' && *rest <= '9'; ++rest, unit /= 10) {
      *microseconds += (*rest - '0') * unit;
    }
  }
  if (*rest == 'Z') ++rest;
  return *rest == '\0';
}

bool ParseDate(const std::string& text, int64_t* time) {
  for (const char* format : {"%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%d"}) {
    tm parts{};
    int64_t fraction = 0;
    const char* rest = strptime(text.c_str(), format, &parts);
    if (rest == nullptr || !ParseFraction(rest, &fraction)) continue;
    const tm given = parts;
    const time_t seconds = timegm(&parts);
    // What is no day, such as the 31st of April, would become another one.
    if (parts.tm_mday != given.tm_mday || parts.tm_mon != given.tm_mon) return false;
    *time = int64_t{seconds} * kSecond + fraction;
    return true;
  }
  return false;
}

bool ParseBy(const std::string& text, By* by) {
  static constexpr std::pair<const char*, By> kNames[] = {
      {"tenant", By::kTenant}, {"identity", By::kIdentity}, {"program", By::kProgram}};
  for (const auto& [name, value] : kNames) {
    if (text != name) continue;
    *by = value;
    return true;
  }
  return false;
}

// Of options with a value; false with a sentence.
bool Apply(const std::string& option, const std::string& value, int64_t now, Options* options,
           std::string* sentence) {
  if (option == "--file") {
    options->file = value;
    *sentence = "--file needs a name.";
    return !value.empty();
  }
  if (option == "--by") {
    *sentence = "--by is tenant, identity or program, not '" + value + "'.";
    return ParseBy(value, &options->by);
  }
  int64_t* time = option == "--since" ? &options->since : &options->until;
  *sentence = option +
              " is a time in UTC, such as 2026-11-26 or 2026-11-26T19:20, or so long ago, " +
              "such as 36h or 7d; '" + value + "' is neither.";
  return ParseTime(value, now, time);
}

}  // namespace

bool ParseTime(const std::string& text, int64_t now, int64_t* time) {
  return ParseAgo(text, now, time) || ParseDate(text, time);
}

bool ParseOptions(const Arguments& arguments, int64_t now, Options* options,
                  std::string* sentence) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (IsHelp(arguments[i])) return options->help = true;
    if (arguments[i] == "--json") {
      options->json = true;
      continue;
    }
    Taken taken = Taken::kNo;
    for (const char* option : {"--since", "--until", "--by", "--file"}) {
      std::string value;
      taken = TakeOption("usage", arguments, option, &i, &value);
      if (taken == Taken::kBad) return sentence->clear(), false;  // it has said so
      if (taken == Taken::kNo) continue;
      if (!Apply(option, value, now, options, sentence)) return false;
      break;
    }
    if (taken == Taken::kYes) continue;
    *sentence = "unknown option '" + arguments[i] + "'.";
    return false;
  }
  *sentence = "--until is not after --since.";
  return options->since < options->until;
}

}  // namespace longwire::cli::usage
