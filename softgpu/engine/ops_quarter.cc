// cvt of pairs of 8-bit floating-point values, e4m3 and e5m2 (OCP 8-bit floating point, 1.0), from
// single and to and from half precision. What is too large becomes the largest value (satfinite is
// the only way that PTX offers), every NaN 0x7f.
#include <algorithm>

#include "softgpu/engine/ops_common.h"

namespace softgpu::SOFTGPU_ISA {
namespace {

template <int kFractionBits, uint8_t kLargest>
struct Quarter {
  static constexpr int kFraction = kFractionBits;
  static constexpr int kBias = kFractionBits == 3 ? 7 : 15;
  static constexpr uint8_t kMost = kLargest;
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
  if (size >= 65536) return sign | T::kMost;
  int exponent = size == 0 ? 1 - T::kBias : std::max(std::ilogb(size), 1 - T::kBias);
  auto steps = static_cast<uint32_t>(std::nearbyint(std::ldexp(size, T::kFraction - exponent)));
  uint32_t bits = static_cast<uint32_t>(exponent + T::kBias - 1) << T::kFraction;
  return sign | std::min<uint32_t>(bits + steps, T::kMost);
}

template <class T>
float FromQuarter(uint32_t bits) {
  uint32_t size = bits & 0x7f;
  uint32_t exponent = size >> T::kFraction;
  auto steps = static_cast<float>(size & ((1u << T::kFraction) - 1));
  float value = 0;
  if (size > T::kMost) {
    value = T::kFraction == 2 && size == 0x7c ? INFINITY : NAN;
  } else if (exponent == 0) {
    value = std::ldexp(steps, 1 - T::kBias - T::kFraction);
  } else {
    value = std::ldexp(steps + (1 << T::kFraction),
                       static_cast<int>(exponent) - T::kBias - T::kFraction);
  }
  return (bits & 0x80) != 0 ? -value : value;
}

float Rectify(float value) { return value < 0 ? 0 : value; }

// d = {a, b}: the first source is the upper byte.
template <class T, bool kRelu>
void FromSingles(Warp& w, const Instruction& ins) {
  auto* d = w.Reg<uint32_t>(ins.op[0]);
  const auto* a = w.Reg<float>(ins.op[1]);
  const auto* b = w.Reg<float>(ins.op[2]);
  ForEachLane(w.exec, [&](int i) {
    float high = kRelu ? Rectify(a[i]) : a[i];
    float low = kRelu ? Rectify(b[i]) : b[i];
    d[i] = ToQuarter<T>(high) << 8 | ToQuarter<T>(low);
  });
}

template <class T, bool kRelu>
void FromHalves(Warp& w, const Instruction& ins) {
  auto* d = w.Reg<uint32_t>(ins.op[0]);
  const auto* a = w.Reg<uint32_t>(ins.op[1]);
  ForEachLane(w.exec, [&](int i) {
    float high = ToFloat(Unpack<Half>(a[i] >> 16));
    float low = ToFloat(Unpack<Half>(a[i]));
    if (kRelu) {
      high = Rectify(high);
      low = Rectify(low);
    }
    d[i] = ToQuarter<T>(high) << 8 | ToQuarter<T>(low);
  });
}

template <class T, bool kRelu>
void ToHalves(Warp& w, const Instruction& ins) {
  auto* d = w.Reg<uint32_t>(ins.op[0]);
  const auto* a = w.Reg<uint32_t>(ins.op[1]);
  auto half = [](uint32_t bits) {
    float value = FromQuarter<T>(bits);
    if (value != value) return 0x7fffu;
    return static_cast<uint32_t>(Pack<Half>(static_cast<Half>(kRelu ? Rectify(value) : value)));
  };
  ForEachLane(w.exec, [&](int i) { d[i] = half(a[i] >> 8) << 16 | half(a[i]); });
}

constexpr OpEntry kOps[] = {
    {"cvt.f16x2.e4m3x2", "ii", ToHalves<E4m3, false>},
    {"cvt.f16x2.e5m2x2", "ii", ToHalves<E5m2, false>},
    {"cvt.relu.f16x2.e4m3x2", "ii", ToHalves<E4m3, true>},
    {"cvt.relu.f16x2.e5m2x2", "ii", ToHalves<E5m2, true>},
    {"cvt.satfinite.e4m3x2.f16x2", "ii", FromHalves<E4m3, false>},
    {"cvt.satfinite.e4m3x2.f32", "iff", FromSingles<E4m3, false>},
    {"cvt.satfinite.e5m2x2.f16x2", "ii", FromHalves<E5m2, false>},
    {"cvt.satfinite.e5m2x2.f32", "iff", FromSingles<E5m2, false>},
    {"cvt.satfinite.relu.e4m3x2.f16x2", "ii", FromHalves<E4m3, true>},
    {"cvt.satfinite.relu.e4m3x2.f32", "iff", FromSingles<E4m3, true>},
    {"cvt.satfinite.relu.e5m2x2.f16x2", "ii", FromHalves<E5m2, true>},
    {"cvt.satfinite.relu.e5m2x2.f32", "iff", FromSingles<E5m2, true>},
};

}  // namespace

std::span<const OpEntry> QuarterOps() { return kOps; }

}  // namespace softgpu::SOFTGPU_ISA
