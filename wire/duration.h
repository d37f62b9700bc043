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

}  // namespace longwire::wire
