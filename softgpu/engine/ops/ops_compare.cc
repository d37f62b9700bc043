// setp: comparisons into predicates.
#include "softgpu/engine/ops/ops_common.h"

namespace softgpu::SOFTGPU_ISA {
namespace {

// Ordered comparisons are false when a side is a NaN, those ending in u are true.
enum class Is { kEq, kNe, kLt, kLe, kGt, kGe, kEqu, kNeu, kLtu, kLeu, kGtu, kGeu, kNum, kNan };

template <Is kIs, class T>
bool Holds(T a, T b) {
  switch (kIs) {
    case Is::kEq:
      return a == b;
    case Is::kNe:
      return std::is_integral_v<T> ? a != b : a < b || a > b;
    case Is::kLt:
      return a < b;
    case Is::kLe:
      return a <= b;
    case Is::kGt:
      return a > b;
    case Is::kGe:
      return a >= b;
    case Is::kEqu:
      return !(a < b || a > b);
    case Is::kNeu:
      return a != b;
    case Is::kLtu:
      return !(a >= b);
    case Is::kLeu:
      return !(a > b);
    case Is::kGtu:
      return !(a <= b);
    case Is::kGeu:
      return !(a < b);
    case Is::kNum:
      return a == a && b == b;
    case Is::kNan:
      return a != a || b != b;
  }
}

// Halves compare as floats: the conversion is exact.
template <class T>
auto Widen(Storage<T> s) {
  if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, Bfloat>) {
    return ToFloat(Unpack<T>(s));
  } else {
    return Unpack<T>(s);
  }
}

template <Is kIs, class T>
void Compare(Warp& w, const Instruction& ins) {
  const auto* a = w.Reg<Storage<T>>(ins.op[1]);
  const auto* b = w.Reg<Storage<T>>(ins.op[2]);
  uint32_t bits[kLanes];
  for (int i = 0; i < kLanes; ++i) {
    bits[i] = Holds<kIs>(Widen<T>(a[i]), Widen<T>(b[i])) ? 1u << i : 0;
  }
  uint32_t result = 0;
  for (uint32_t bit : bits) result |= bit;
  SetPredicate(w, ins.op[0], result);
}

// Both halves of packed pairs: op[0] for the low ones, op[3] for the high ones.
template <Is kIs, class T>
void ComparePair(Warp& w, const Instruction& ins) {
  const auto* a = w.Reg<uint32_t>(ins.op[1]);
  const auto* b = w.Reg<uint32_t>(ins.op[2]);
  uint32_t low = 0;
  uint32_t high = 0;
  ForEachLane(w.exec, [&](int i) {
    if (Holds<kIs>(Widen<T>(a[i]), Widen<T>(b[i]))) low |= 1u << i;
    if (Holds<kIs>(Widen<T>(a[i] >> 16), Widen<T>(b[i] >> 16))) high |= 1u << i;
  });
  SetPredicate(w, ins.op[0], low);
  SetPredicate(w, ins.op[3], high);
}

// set.….f16x2.f16x2: 1.0 or 0 in each half; set.….u32.f16x2: all ones or zero in each half.
template <Is kIs, class T, bool kBits>
void SetPair(Warp& w, const Instruction& ins) {
  auto* d = w.Reg<uint32_t>(ins.op[0]);
  const auto* a = w.Reg<uint32_t>(ins.op[1]);
  const auto* b = w.Reg<uint32_t>(ins.op[2]);
  uint32_t one = kBits ? 0xffff : std::is_same_v<T, Half> ? 0x3c00 : 0x3f80;
  ForEachLane(w.exec, [&](int i) {
    uint32_t low = Holds<kIs>(Widen<T>(a[i]), Widen<T>(b[i])) ? one : 0;
    uint32_t high = Holds<kIs>(Widen<T>(a[i] >> 16), Widen<T>(b[i] >> 16)) ? one : 0;
    d[i] = high << 16 | low;
  });
}

#define SOFTGPU_COMPARE(name, is)                                          \
  {"setp." name ".f32", nullptr, Compare<Is::is, float>},                  \
      {"setp." name ".f64", nullptr, Compare<Is::is, double>},             \
      {"setp." name ".f16", nullptr, Compare<Is::is, Half>},               \
      {"setp." name ".bf16", nullptr, Compare<Is::is, Bfloat>},            \
      {"setp2." name ".f16x2", nullptr, ComparePair<Is::is, Half>},        \
      {"setp2." name ".bf16x2", nullptr, ComparePair<Is::is, Bfloat>},     \
      {"set2." name ".f16x2", nullptr, SetPair<Is::is, Half, false>},      \
      {"set2." name ".bf16x2", nullptr, SetPair<Is::is, Bfloat, false>},   \
      {"set2." name ".u32.f16x2", nullptr, SetPair<Is::is, Half, true>}, { \
    "set2." name ".u32.bf16x2", nullptr, SetPair<Is::is, Bfloat, true>     \
  }
#define SOFTGPU_COMPARE_INTEGERS(name, is)                         \
  {"setp." name ".s16", nullptr, Compare<Is::is, int16_t>},        \
      {"setp." name ".s32", nullptr, Compare<Is::is, int32_t>},    \
      {"setp." name ".s64", nullptr, Compare<Is::is, int64_t>},    \
      {"setp." name ".u16", nullptr, Compare<Is::is, uint16_t>},   \
      {"setp." name ".u32", nullptr, Compare<Is::is, uint32_t>}, { \
    "setp." name ".u64", nullptr, Compare<Is::is, uint64_t>        \
  }

constexpr OpEntry kOps[] = {
    SOFTGPU_COMPARE("eq", kEq),          SOFTGPU_COMPARE("equ", kEqu),
    SOFTGPU_COMPARE("ge", kGe),          SOFTGPU_COMPARE("geu", kGeu),
    SOFTGPU_COMPARE("gt", kGt),          SOFTGPU_COMPARE("gtu", kGtu),
    SOFTGPU_COMPARE("le", kLe),          SOFTGPU_COMPARE("leu", kLeu),
    SOFTGPU_COMPARE("lt", kLt),          SOFTGPU_COMPARE("ltu", kLtu),
    SOFTGPU_COMPARE("nan", kNan),        SOFTGPU_COMPARE("ne", kNe),
    SOFTGPU_COMPARE("neu", kNeu),        SOFTGPU_COMPARE("num", kNum),
    SOFTGPU_COMPARE_INTEGERS("eq", kEq), SOFTGPU_COMPARE_INTEGERS("ge", kGe),
    SOFTGPU_COMPARE_INTEGERS("gt", kGt), SOFTGPU_COMPARE_INTEGERS("le", kLe),
    SOFTGPU_COMPARE_INTEGERS("lt", kLt), SOFTGPU_COMPARE_INTEGERS("ne", kNe),
};

}  // namespace

std::span<const OpEntry> CompareOps() { return kOps; }

}  // namespace softgpu::SOFTGPU_ISA
