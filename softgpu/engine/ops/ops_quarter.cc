// cvt of pairs of 8-bit floating-point values from single and to and from half precision. What is
// too large becomes the largest value (satfinite is the only way that PTX offers), every NaN 0x7f.
#include "softgpu/engine/ops/quarter.h"

namespace softgpu::SOFTGPU_ISA {
namespace {

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
