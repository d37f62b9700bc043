// cvt from single precision to f16, bf16 and tf32, alone and in pairs, with every rounding, .relu
// and .satfinite. The plain conversions to nearest are in ops_convert.cc.
#include <algorithm>

#include "softgpu/engine/ops/narrowing.h"
#include "softgpu/engine/ops/ops_common.h"

namespace softgpu::SOFTGPU_ISA {
namespace {

// Formats whose values are singles with fewer bits of fraction. Consecutive positive values have
// consecutive bits, so that a carry out of the fraction does the right thing to the exponent.
template <int kDropped, uint32_t kShift, uint32_t kNotANumber>
struct ShorterSingle {
  static constexpr uint32_t kNan = kNotANumber;
  static constexpr uint32_t kLargestFinite = (0x7f7fffff >> kDropped) << kShift;
  static constexpr uint32_t kSign = 0x80000000 >> kDropped << kShift;
  static uint32_t Round(float size, uint32_t how) {
    auto bits = std::bit_cast<uint32_t>(size);
    constexpr uint32_t kHalfStep = 1u << (kDropped - 1);
    uint32_t add = kHalfStep - 1 + (bits >> kDropped & 1);
    if ((how & kTiesAway) != 0) add = kHalfStep;
    if ((how & kTowardsZero) != 0) add = 0;
    return (bits + add) >> kDropped << kShift;
  }
};
using ToBfloat = ShorterSingle<16, 0, 0x7fff>;
using ToTensorFloat = ShorterSingle<13, 13, 0x7fffffff>;  // keeps its place in the 32 bits

struct ToHalf {
  static constexpr uint32_t kNan = 0x7fff;
  static constexpr uint32_t kLargestFinite = 0x7bff;
  static constexpr uint32_t kSign = 0x8000;
  static uint32_t Round(float size, uint32_t how) {
    Half nearest = FromFloat<Half>(size);
    bool above = (how & kTowardsZero) != 0 && ToFloat(nearest) > size;
    return Pack<Half>(nearest) - (above ? 1 : 0);
  }
};

template <class Format>
uint32_t Narrow(float value, uint32_t how) {
  if (value != value) return Format::kNan;
  if ((how & kRectified) != 0 && value <= 0) return 0;
  uint32_t bits = Format::Round(std::fabs(value), how);
  if ((how & kFinite) != 0) bits = std::min(bits, Format::kLargestFinite);
  return bits | (std::signbit(value) ? Format::kSign : 0);
}

template <class Format>
void NarrowLanes(Warp& w, const Instruction& ins) {
  auto* d = w.Reg<uint32_t>(ins.op[0]);
  const auto* a = w.Reg<float>(ins.op[1]);
  ForEachLane(w.exec, [&](int i) { d[i] = Narrow<Format>(a[i], ins.extra); });
}

// d = {a, b}: the first source is the upper half.
template <class Format>
void NarrowPairs(Warp& w, const Instruction& ins) {
  auto* d = w.Reg<uint32_t>(ins.op[0]);
  const auto* a = w.Reg<float>(ins.op[1]);
  const auto* b = w.Reg<float>(ins.op[2]);
  ForEachLane(w.exec, [&](int i) {
    d[i] = Narrow<Format>(a[i], ins.extra) << 16 | Narrow<Format>(b[i], ins.extra);
  });
}

constexpr OpEntry kOps[] = {
    {"cvt.narrow.bf16", nullptr, NarrowLanes<ToBfloat>},
    {"cvt.narrow.bf16x2", nullptr, NarrowPairs<ToBfloat>},
    {"cvt.narrow.f16", nullptr, NarrowLanes<ToHalf>},
    {"cvt.narrow.f16x2", nullptr, NarrowPairs<ToHalf>},
    {"cvt.narrow.tf32", nullptr, NarrowLanes<ToTensorFloat>},
};

}  // namespace

std::span<const OpEntry> NarrowOps() { return kOps; }

}  // namespace softgpu::SOFTGPU_ISA
