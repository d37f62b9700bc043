// Sizes of memory that several folders must agree on, and rounding to them.
#pragma once

#include <cstdint>

namespace longwire::base {

// Of the processor's memory: what mmap maps, and in what changes of memory are noticed.
inline constexpr uint64_t kPageBytes = 4096;

// Of device memory: sizes, addresses and mappings of chunks are multiples of it (2 MiB, as the
// driver reports for every GPU that Longwire serves).
inline constexpr uint64_t kDeviceGranularityBytes = uint64_t{2} << 20;

// 64 TiB: more than any device has, and half of the addresses of a process on x86-64. Larger sizes
// are refused before anything is computed from them, so that sums of a few cannot overflow.
inline constexpr uint64_t kMaxMemoryBytes = uint64_t{1} << 46;

constexpr uint64_t RoundDown(uint64_t value, uint64_t unit) { return value / unit * unit; }
// The value is at least `unit` below the end of the number's range.
constexpr uint64_t RoundUp(uint64_t value, uint64_t unit) {
  return RoundDown(value + unit - 1, unit);
}

}  // namespace longwire::base
