// Units of sizes and times, as the file has them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "proto/config.pb.h"

namespace longwire::config {

struct Unit {
  std::string_view name;
  uint64_t size;  // in bytes or nanoseconds
};

// The word forever, where it may stand for a time.
inline constexpr uint64_t kForever = UINT64_MAX;

// The largest first; none for plain numbers.
std::span<const Unit> UnitsOf(Kind kind);
std::string UnitNames(Kind kind);

// A number in the largest unit in which it is whole: "40GiB", "2ms", "7".
std::string UnitText(Kind kind, uint64_t value);

}  // namespace longwire::config
