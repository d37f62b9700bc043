// 8-bit floating-point values, e4m3 and e5m2 (OCP 8-bit floating point, 1.0). Included by ops_*.cc
// only.
#pragma once

#include <algorithm>

#include "softgpu/engine/ops/ops_common.h"

namespace softgpu::SOFTGPU_ISA {

template <int kFractionBits, uint8_t kLargest>
struct Quarter {
  static constexpr int kFraction = kFractionBits;
  static constexpr int kBias = kFractionBits == 3 ? 7 : 15;
  static constexpr uint8_t kLargestFinite = kLargest;
};
using E4m3 = Quarter<3, 0x7e>;
using E5m2 = Quarter<2, 0x7b>;

// To nearest, ties to even. Consecutive positive values have consecutive bits, so that the number
// of steps above the exponent's first value, added to the exponent's bits, carries by itself.
template <class T>
uint32_t ToQuarter(float value) {
  if (value != value) return 0x7f;
  uint32_t sign = std::signbit(value) ? 0x80 : 0;
  float size = std::fabs(value);
  if (size >= 65536) return sign | T::kLargestFinite;
  int exponent = size == 0 ? 1 - T::kBias : std::max(std::ilogb(size), 1 - T::kBias);
  auto steps = static_cast<uint32_t>(std::nearbyint(std::ldexp(size, T::kFraction - exponent)));
  uint32_t bits = static_cast<uint32_t>(exponent + T::kBias - 1) << T::kFraction;
  return sign | std::min<uint32_t>(bits + steps, T::kLargestFinite);
}

template <class T>
float FromQuarter(uint32_t bits) {
  uint32_t size = bits & 0x7f;
  uint32_t exponent = size >> T::kFraction;
  auto steps = static_cast<float>(size & ((1u << T::kFraction) - 1));
  float value = 0;
  if (size > T::kLargestFinite) {
    value = T::kFraction == 2 && size == 0x7c ? INFINITY : NAN;
  } else if (exponent == 0) {
    value = std::ldexp(steps, 1 - T::kBias - T::kFraction);
  } else {
    value = std::ldexp(steps + (1 << T::kFraction),
                       static_cast<int>(exponent) - T::kBias - T::kFraction);
  }
  return (bits & 0x80) != 0 ? -value : value;
}

}  // namespace softgpu::SOFTGPU_ISA
