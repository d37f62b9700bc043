// Durations as people write them: 90s, 30m, 1h, 2d.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "wire/number.h"

namespace longwire::wire {

// For room at a server (LONGWIRE_WAIT).
inline constexpr int64_t kLongestWaitSeconds = int64_t{30} * 24 * 3600;
// A hundred years: the sum with a time of any clock is still one.
inline constexpr int64_t kForeverSeconds = int64_t{36500} * 24 * 3600;
inline constexpr const char* kWaitExpected =
    "a duration such as 90s, 30m, 2h or 1d, at most 30d, or forever, or 0";

// Seconds, from 1 to `most`; nullopt if the text is no such duration.
inline std::optional<int64_t> ParseDuration(std::string_view text, int64_t most) {
  constexpr int64_t kMinute = 60, kHour = 60 * kMinute, kDay = 24 * kHour;
  constexpr std::pair<char, int64_t> kUnits[] = {
      {'s', 1}, {'m', kMinute}, {'h', kHour}, {'d', kDay}};
  for (const auto& [letter, seconds] : kUnits) {
    if (!text.ends_with(letter)) continue;
    auto number = ParseNumber(text.substr(0, text.size() - 1), 1, most / seconds);
    if (number) return *number * seconds;
  }
  return std::nullopt;
}

// The same for LONGWIRE_WAIT, with the words that kWaitExpected has.
inline std::optional<int64_t> ParseWait(std::string_view text) {
  if (text == "0") return 0;
  if (text == "forever") return kForeverSeconds;
  return ParseDuration(text, kLongestWaitSeconds);
}

}  // namespace longwire::wire
