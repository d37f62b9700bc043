// cvt between all number types. Conversions of floating-point values to integers expect a value
// that has been rounded already (cvt.rzi.f32 and so on, below).
#include <limits>

#include "softgpu/engine/ops/ops_common.h"

namespace softgpu::SOFTGPU_ISA {
namespace {

// Out-of-range values clamp; NaN is 0 for 32-bit sources and results, else the sign bit.
template <class To, class From>
To ToInteger(From value) {
  constexpr auto kLow = std::numeric_limits<To>::min();
  constexpr auto kHigh = std::numeric_limits<To>::max();
  if (value != value) {
    bool zero = sizeof(From) < 8 && sizeof(To) < 8;
    return zero ? To{0} : static_cast<To>(std::make_unsigned_t<To>{1} << (sizeof(To) * 8 - 1));
  }
  if (value <= static_cast<From>(kLow)) return kLow;
  if (value >= static_cast<From>(kHigh)) return kHigh;
  return static_cast<To>(value);
}

// The NaN of single precision and what it is in double: what is printed has no sign.
constexpr uint32_t kNan32 = 0x7fffffff;
constexpr uint64_t kNan64 = 0x7fffffffe0000000;

template <class To, class From>
struct ConvertTo {
  To operator()(From value) const {
    constexpr bool kFromSmall = std::is_same_v<From, Half> || std::is_same_v<From, Bfloat>;
    constexpr bool kToSmall = std::is_same_v<To, Half> || std::is_same_v<To, Bfloat>;
    if constexpr (kFromSmall && std::is_integral_v<To>) {
      return ToInteger<To>(ToFloat(value));
    } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
      return ToInteger<To>(value);
    } else if constexpr (kFromSmall && kToSmall) {
      return FromFloat<To>(ToFloat(value));
    } else if constexpr (kFromSmall) {
      return static_cast<To>(ToFloat(value));
    } else if constexpr (std::is_same_v<From, float> && std::is_same_v<To, double>) {
      return value == value ? value : std::bit_cast<double>(kNan64);
    } else if constexpr (std::is_same_v<From, double> && std::is_same_v<To, float>) {
      return value == value ? static_cast<float>(value) : std::bit_cast<float>(kNan32);
    } else if constexpr (std::is_same_v<To, Bfloat>) {
      return FromFloat<Bfloat>(static_cast<float>(value));
    } else {
      return static_cast<To>(value);
    }
  }
};

template <class To, class From>
struct ClampTo {
  To operator()(From value) const {
    __int128 wide = value;
    __int128 low = std::numeric_limits<To>::min();
    __int128 high = std::numeric_limits<To>::max();
    return static_cast<To>(wide < low ? low : wide > high ? high : wide);
  }
};

enum class Round { kNearest, kZero, kDown, kUp };
template <Round kRound>
struct RoundTo {
  template <class T>
  T operator()(T value) const {
    if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, Bfloat>) {
      return FromFloat<T>((*this)(ToFloat(value)));
    } else {
      switch (kRound) {
        case Round::kNearest:
          return std::nearbyint(value);
        case Round::kZero:
          return std::trunc(value);
        case Round::kDown:
          return std::floor(value);
        default:
          return std::ceil(value);
      }
    }
  }
};

// Down, up or to zero: the nearest half, moved by one step if it lies on the wrong side.
template <Round kRound, class T>
struct RoundToHalf {
  T operator()(double value) const {
    T nearest = FromFloat<T>(static_cast<float>(value));
    auto bits = std::bit_cast<uint16_t>(nearest);
    double got = ToFloat(nearest);
    bool up = kRound == Round::kUp || (kRound == Round::kZero && value < 0);
    if (value != value || got == value || (got > value) == up) return nearest;
    if (up && (bits & 0x7fff) == 0) return std::bit_cast<T>(uint16_t{1});
    if (!up && (bits & 0x7fff) == 0) return std::bit_cast<T>(uint16_t{0x8001});
    bool away = up == ((bits & 0x8000) == 0);
    return std::bit_cast<T>(static_cast<uint16_t>(away ? bits + 1 : bits - 1));
  }
};

template <class Part>
void PackPair(Warp& w, const Instruction& ins) {
  auto* d = w.Reg<uint32_t>(ins.op[0]);
  const auto* a = w.Reg<float>(ins.op[1]);
  const auto* b = w.Reg<float>(ins.op[2]);
  ForEachLane(w.exec, [&](int i) {
    d[i] = Pack<Part>(FromFloat<Part>(a[i])) << 16 | Pack<Part>(FromFloat<Part>(b[i]));
  });
}

// cvt.pack: a above b, each clamped to kBits bits; the low bits of c fill the bits above both.
template <int kBits, bool kSigned>
void PackClamped(Warp& w, const Instruction& ins) {
  constexpr int32_t kLow = kSigned ? -(1 << (kBits - 1)) : 0;
  constexpr int32_t kHigh = (1 << (kSigned ? kBits - 1 : kBits)) - 1;
  constexpr uint32_t kMask = (1u << kBits) - 1;
  auto* d = w.Reg<uint32_t>(ins.op[0]);
  const auto* a = w.Reg<int32_t>(ins.op[1]);
  const auto* b = w.Reg<int32_t>(ins.op[2]);
  const auto* c = w.Reg<uint32_t>(ins.op[3]);
  auto clamp = [](int32_t v) {
    return static_cast<uint32_t>(v < kLow ? kLow : v > kHigh ? kHigh : v) & kMask;
  };
  Lanes(w, [=](int i) {
    uint32_t above = kBits < 16 ? c[i] << (2 * kBits & 31) : 0;
    d[i] = above | clamp(a[i]) << kBits | clamp(b[i]);
  });
}

// A signed narrow value in a register is sign-extended.
template <class Op, class To, class From>
void ConvertLanes(Warp& w, const Instruction& ins) {
  auto* d = w.Reg<Storage<To>>(ins.op[0]);
  const auto* a = w.Reg<Storage<From>>(ins.op[1]);
  Lanes(w, [=](int i) {
    To value = Op()(Unpack<From>(a[i]));
    if constexpr (std::is_integral_v<To> && std::is_signed_v<To> && sizeof(To) < 4) {
      d[i] = static_cast<uint32_t>(static_cast<int32_t>(value));
    } else {
      d[i] = Pack<To>(value);
    }
  });
}

#define SOFTGPU_FROM(to, to_type, from, from_type) \
  { "cvt." to "." from, nullptr, ConvertLanes<ConvertTo<to_type, from_type>, to_type, from_type> }
#define SOFTGPU_TO(to, type)                                                            \
  SOFTGPU_FROM(to, type, "bf16", Bfloat), SOFTGPU_FROM(to, type, "f16", Half),          \
      SOFTGPU_FROM(to, type, "f32", float), SOFTGPU_FROM(to, type, "f64", double),      \
      SOFTGPU_FROM(to, type, "s16", int16_t), SOFTGPU_FROM(to, type, "s32", int32_t),   \
      SOFTGPU_FROM(to, type, "s64", int64_t), SOFTGPU_FROM(to, type, "s8", int8_t),     \
      SOFTGPU_FROM(to, type, "u16", uint16_t), SOFTGPU_FROM(to, type, "u32", uint32_t), \
      SOFTGPU_FROM(to, type, "u64", uint64_t), SOFTGPU_FROM(to, type, "u8", uint8_t)
#define SOFTGPU_CLAMP_FROM(to, to_type, from, from_type) \
  { "cvt.sat." to "." from, nullptr, ConvertLanes<ClampTo<to_type, from_type>, to_type, from_type> }
#define SOFTGPU_CLAMP(to, type)                                                                    \
  SOFTGPU_CLAMP_FROM(to, type, "s16", int16_t), SOFTGPU_CLAMP_FROM(to, type, "s32", int32_t),      \
      SOFTGPU_CLAMP_FROM(to, type, "s64", int64_t), SOFTGPU_CLAMP_FROM(to, type, "u16", uint16_t), \
      SOFTGPU_CLAMP_FROM(to, type, "u32", uint32_t), SOFTGPU_CLAMP_FROM(to, type, "u64", uint64_t)
#define SOFTGPU_ROUND(name, round)                                                                 \
  One<RoundTo<round>, Half>("cvt." name ".f16"), One<RoundTo<round>, Bfloat>("cvt." name ".bf16"), \
      One<RoundTo<round>, float>("cvt." name ".f32"),                                              \
      One<RoundTo<round>, double>("cvt." name ".f64")

constexpr OpEntry kOps[] = {
    SOFTGPU_TO("bf16", Bfloat),
    {"cvt.bf16x2.f32", "iff", PackPair<Bfloat>},
    SOFTGPU_TO("f16", Half),
    {"cvt.f16x2.f32", "iff", PackPair<Half>},
    SOFTGPU_TO("f32", float),
    SOFTGPU_TO("f64", double),
    One<RoundToHalf<Round::kDown, Bfloat>, Bfloat, double>("cvt.rm.bf16.f64"),
    One<RoundToHalf<Round::kDown, Half>, Half, double>("cvt.rm.f16.f64"),
    {"cvt.pack.sat.s16.s32", "iii", PackClamped<16, true>},
    {"cvt.pack.sat.s2.s32.b32", "iiii", PackClamped<2, true>},
    {"cvt.pack.sat.s4.s32.b32", "iiii", PackClamped<4, true>},
    {"cvt.pack.sat.s8.s32.b32", "iiii", PackClamped<8, true>},
    {"cvt.pack.sat.u16.s32", "iii", PackClamped<16, false>},
    {"cvt.pack.sat.u2.s32.b32", "iiii", PackClamped<2, false>},
    {"cvt.pack.sat.u4.s32.b32", "iiii", PackClamped<4, false>},
    {"cvt.pack.sat.u8.s32.b32", "iiii", PackClamped<8, false>},
    SOFTGPU_ROUND("rmi", Round::kDown),
    SOFTGPU_ROUND("rni", Round::kNearest),
    One<RoundToHalf<Round::kUp, Bfloat>, Bfloat, double>("cvt.rp.bf16.f64"),
    One<RoundToHalf<Round::kUp, Half>, Half, double>("cvt.rp.f16.f64"),
    SOFTGPU_ROUND("rpi", Round::kUp),
    One<RoundToHalf<Round::kZero, Bfloat>, Bfloat, double>("cvt.rz.bf16.f64"),
    One<RoundToHalf<Round::kZero, Half>, Half, double>("cvt.rz.f16.f64"),
    SOFTGPU_ROUND("rzi", Round::kZero),
    SOFTGPU_TO("s16", int16_t),
    SOFTGPU_TO("s32", int32_t),
    SOFTGPU_TO("s64", int64_t),
    SOFTGPU_TO("s8", int8_t),
    SOFTGPU_CLAMP("s16", int16_t),
    SOFTGPU_CLAMP("s32", int32_t),
    SOFTGPU_CLAMP("s8", int8_t),
    SOFTGPU_CLAMP("u16", uint16_t),
    SOFTGPU_CLAMP("u32", uint32_t),
    SOFTGPU_CLAMP("u8", uint8_t),
    SOFTGPU_TO("u16", uint16_t),
    SOFTGPU_TO("u32", uint32_t),
    SOFTGPU_TO("u64", uint64_t),
    SOFTGPU_TO("u8", uint8_t),
};

}  // namespace

std::span<const OpEntry> ConvertOps() { return kOps; }

}  // namespace softgpu::SOFTGPU_ISA
