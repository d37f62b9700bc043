// Parses numbers in options and settings. Text that is not entirely a number is rejected.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace longwire::wire {

// All of `text` as a whole decimal number from `least` to `most`; nullopt if it is none.
inline std::optional<int64_t> ParseNumber(std::string_view text, int64_t least, int64_t most) {
  int64_t number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number >= least && number <= most ? std::optional<int64_t>(number) : std::nullopt;
}

// The same for a list of at least one number, separated by commas.
inline std::optional<std::vector<int32_t>> ParseNumbers(std::string_view list, int32_t least,
                                                        int32_t most) {
  std::vector<int32_t> numbers;
  while (true) {
    size_t comma = list.find(',');
    auto number = ParseNumber(list.substr(0, comma), least, most);
    if (!number) return std::nullopt;
    numbers.push_back(static_cast<int32_t>(*number));
    if (comma == std::string_view::npos) return numbers;
    list.remove_prefix(comma + 1);
  }
}

}  // namespace longwire::wire
