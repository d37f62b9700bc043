#include "server/worker/walls/settings.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "wire/number.h"

namespace longwire::worker {
namespace {

constexpr size_t kMaxBytes = size_t{4} << 20;

std::string ReadAll(int descriptor) {
  std::string text;
  char piece[4096];
  for (ssize_t got = 0; text.size() < kMaxBytes; text.append(piece, static_cast<size_t>(got))) {
    got = pread(descriptor, piece, sizeof(piece), static_cast<off_t>(text.size()));
    if (got <= 0) break;
  }
  return text;
}

// The entries up to the empty one, which is taken, too.
std::vector<std::string> TakeList(std::string_view* text) {
  std::vector<std::string> entries;
  while (!text->empty()) {
    std::string_view entry = text->substr(0, text->find('\0'));
    text->remove_prefix(std::min(text->size(), entry.size() + 1));
    if (entry.empty()) break;
    entries.emplace_back(entry);
  }
  return entries;
}

}  // namespace

std::vector<std::string> TakeSettings(std::span<char* const> words, int* own_pid) {
  std::vector<std::string> options(words.begin(), words.end());
  if (options.size() != 4 || options[0] != "--settings" || options[2] != "--pid") return options;
  auto file = wire::ParseNumber(options[1], 0, 1 << 20);
  auto pid = wire::ParseNumber(options[3], 1, INT32_MAX);
  if (!file || !pid) return options;
  *own_pid = static_cast<int>(*pid);
  const std::string text = ReadAll(static_cast<int>(*file));
  close(static_cast<int>(*file));
  std::string_view rest = text;
  options = TakeList(&rest);
  for (const std::string& variable : TakeList(&rest)) {
    size_t equals = variable.find('=');
    if (equals == std::string::npos) continue;
    setenv(variable.substr(0, equals).c_str(), variable.c_str() + equals + 1, 1);
  }
  return options;
}

}  // namespace longwire::worker
