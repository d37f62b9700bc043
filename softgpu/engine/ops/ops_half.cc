// Half precision and bfloat16, alone and in pairs. Sums and products are exact enough in single
// precision that rounding them again gives the correctly rounded half; fma goes through double.
#include "softgpu/engine/ops/ops_common.h"

namespace softgpu::SOFTGPU_ISA {
namespace {

// a + c rounded to odd: what is cut off leaves its trace in the last bit, so that rounding the
// result again to fewer bits gives what one rounding would have given.
double SumToOdd(double a, double c) {
  double sum = a + c;
  double part = sum - a;
  double error = (a - (sum - part)) + (c - part);
  if (error == 0 || error != error || std::isinf(sum)) return sum;
  auto bits = std::bit_cast<uint64_t>(sum);
  if ((bits & 1) == 0) bits += (error > 0) == (sum > 0) ? 1 : -1;
  return std::bit_cast<double>(bits);
}

template <class T>
T FromDouble(double value) {
  if constexpr (std::is_same_v<T, Half>) {
    return static_cast<Half>(value);
  } else {
    auto single = static_cast<float>(value);
    auto bits = std::bit_cast<uint32_t>(single);
    if (double{single} != value && !std::isinf(single) && value == value && (bits & 1) == 0) {
      bits += (double{single} < value) == (value > 0) ? 1 : -1;
    }
    return FromFloat<T>(std::bit_cast<float>(bits));
  }
}

struct Add {
  template <class T>
  T operator()(T a, T b) const {
    return FromFloat<T>(ToFloat(a) + ToFloat(b));
  }
};
struct Sub {
  template <class T>
  T operator()(T a, T b) const {
    return FromFloat<T>(ToFloat(a) - ToFloat(b));
  }
};
struct Mul {
  template <class T>
  T operator()(T a, T b) const {
    return FromFloat<T>(ToFloat(a) * ToFloat(b));
  }
};
struct Fma {
  template <class T>
  T operator()(T a, T b, T c) const {
    return FromDouble<T>(SumToOdd(double{ToFloat(a)} * ToFloat(b), ToFloat(c)));
  }
};
struct FmaRelu {
  template <class T>
  T operator()(T a, T b, T c) const {
    T r = Fma()(a, b, c);
    return ToFloat(r) <= 0 ? FromFloat<T>(0) : r;
  }
};
template <bool kMinimum, bool kNan>
struct Extreme {
  template <class T>
  T operator()(T a, T b) const {
    float x = ToFloat(a);
    float y = ToFloat(b);
    if (x != x) return kNan ? a : b;
    if (y != y) return kNan ? b : a;
    if (x == y) return std::signbit(x) == kMinimum ? a : b;
    return (x < y) == kMinimum ? a : b;
  }
};
struct Neg {
  template <class T>
  T operator()(T a) const {
    return std::bit_cast<T>(static_cast<uint16_t>(std::bit_cast<uint16_t>(a) ^ 0x8000));
  }
};
struct Abs {
  template <class T>
  T operator()(T a) const {
    return std::bit_cast<T>(static_cast<uint16_t>(std::bit_cast<uint16_t>(a) & 0x7fff));
  }
};
struct ExpTwo {
  template <class T>
  T operator()(T a) const {
    return FromFloat<T>(std::exp2(ToFloat(a)));
  }
};
struct Tanh {
  template <class T>
  T operator()(T a) const {
    return FromFloat<T>(std::tanh(ToFloat(a)));
  }
};
struct Saturate {
  template <class T>
  T operator()(T a) const {
    float x = ToFloat(a);
    return FromFloat<T>(x > 0 ? (x < 1 ? x : 1) : 0);
  }
};

template <class Op, class T, int kSources>
void Pair(Warp& w, const Instruction& ins) {
  auto* d = w.Reg<uint32_t>(ins.op[0]);
  const auto* a = w.Reg<uint32_t>(ins.op[1]);
  const auto* b = w.Reg<uint32_t>(ins.op[2]);
  const auto* c = w.Reg<uint32_t>(ins.op[3]);
  auto half = [&](int i, int shift) {
    T x = Unpack<T>(a[i] >> shift);
    if constexpr (kSources == 1) return Pack<T>(Op()(x));
    if constexpr (kSources == 2) return Pack<T>(Op()(x, Unpack<T>(b[i] >> shift)));
    if constexpr (kSources == 3) {
      return Pack<T>(Op()(x, Unpack<T>(b[i] >> shift), Unpack<T>(c[i] >> shift)));
    }
  };
  ForEachLane(w.exec, [&](int i) { d[i] = half(i, 16) << 16 | half(i, 0); });
}

#define SOFTGPU_HALF1(name, op)                              \
  One<op, Half>(name ".f16"), One<op, Bfloat>(name ".bf16"), \
      {name ".f16x2", "ii", Pair<op, Half, 1>}, {            \
    name ".bf16x2", "ii", Pair<op, Bfloat, 1>                \
  }
#define SOFTGPU_HALF2(name, ...)                                               \
  Two<__VA_ARGS__, Half>(name ".f16"), Two<__VA_ARGS__, Bfloat>(name ".bf16"), \
      {name ".f16x2", "iii", Pair<__VA_ARGS__, Half, 2>}, {                    \
    name ".bf16x2", "iii", Pair<__VA_ARGS__, Bfloat, 2>                        \
  }
#define SOFTGPU_HALF3(name, op)                                  \
  Three<op, Half>(name ".f16"), Three<op, Bfloat>(name ".bf16"), \
      {name ".f16x2", "iiii", Pair<op, Half, 3>}, {              \
    name ".bf16x2", "iiii", Pair<op, Bfloat, 3>                  \
  }

using Minimum = Extreme<true, false>;
using MinimumNan = Extreme<true, true>;
using Maximum = Extreme<false, false>;
using MaximumNan = Extreme<false, true>;

constexpr OpEntry kOps[] = {
    SOFTGPU_HALF1("abs", Abs),
    SOFTGPU_HALF2("add", Add),
    SOFTGPU_HALF1("ex2", ExpTwo),
    SOFTGPU_HALF3("fma", Fma),
    SOFTGPU_HALF3("fma.relu", FmaRelu),
    SOFTGPU_HALF2("max", Maximum),
    SOFTGPU_HALF2("max.NaN", MaximumNan),
    SOFTGPU_HALF2("min", Minimum),
    SOFTGPU_HALF2("min.NaN", MinimumNan),
    SOFTGPU_HALF2("mul", Mul),
    SOFTGPU_HALF1("neg", Neg),
    SOFTGPU_HALF1("sat", Saturate),
    SOFTGPU_HALF2("sub", Sub),
    SOFTGPU_HALF1("tanh", Tanh),
};

}  // namespace

std::span<const OpEntry> HalfOps() { return kOps; }

}  // namespace softgpu::SOFTGPU_ISA
