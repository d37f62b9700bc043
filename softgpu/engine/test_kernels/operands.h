// Operands for operations.cu: special values of every type among random bits, the same everywhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace softgpu::testing {

// clang-format off
inline constexpr uint64_t kSpecial[] = {
    0, 1, 2, 3, 0x7f, 0x80, 0xff, 0x7fff, 0x8000, 0xffff, 0x3c00, 0x7bff, 0x7c00, 0xfc00,
    0x7e00, 0x0001, 0x03ff, 0x3f80, 0x7f7f, 0x7f80, 0x7fffffff, 0x80000000, 0xffffffff,
    0x3f800000, 0xbf800000, 0x7f800000, 0xff800000, 0x7fc00000, 0x00000001, 0x007fffff,
    0x00800000, 0x7f7fffff, 0x4f000000, 0xcf000000, 0x4f800000, 0x5f000000, 0x3f000000,
    0x3fc00000, 0x40200000, 0x7fffffffffffffff, 0x8000000000000000, 0xffffffffffffffff,
    0x3ff0000000000000, 0x7ff0000000000000, 0xfff0000000000000, 0x7ff8000000000000,
    0x000fffffffffffff, 0x0010000000000000, 0x41dfffffffc00000, 0xc1e0000000000000,
    0x43e0000000000000, 0x3fe0000000000000, 0x4004000000000000, 0x36a0000000000000,
    0x47efffffe0000000};
// clang-format on

inline std::vector<uint64_t> MakeOperands(size_t threads) {
  constexpr size_t kCount = sizeof kSpecial / sizeof kSpecial[0];
  std::vector<uint64_t> operands;
  uint64_t state = 0x9e3779b97f4a7c15;
  for (size_t i = 0; i < 3 * threads; ++i) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    uint64_t pick = state >> 58;
    uint64_t value = state * 0x2545f4914f6cdd1d;
    if (pick < 20) value = kSpecial[(state >> 20) % kCount];
    // Numbers near 1, so that sums and conversions have something to round.
    if (pick >= 20 && pick < 34)
      value = (value & 0x807fffff) | 0x3f000000 | (state >> 30 & 0xf) << 23;
    if (pick >= 34 && pick < 46) {
      value = (value & 0x800fffffffffffff) | 0x3fe0000000000000 | (state >> 30 & 0x1f) << 52;
    }
    if (pick >= 46 && pick < 52) value = (value & 0x83ff) | 0x3800 | (state >> 30 & 7) << 10;
    operands.push_back(value);
  }
  return operands;
}

// FNV-1a over the bytes of the values.
inline uint64_t HashValues(const uint64_t* values, size_t count) {
  uint64_t hash = 0xcbf29ce484222325;
  for (size_t i = 0; i < count; ++i) {
    for (int shift = 0; shift < 64; shift += 8) {
      hash = (hash ^ (values[i] >> shift & 0xff)) * 0x100000001b3;
    }
  }
  return hash;
}

}  // namespace softgpu::testing
