// Single and double precision arithmetic. Approximations are computed as the host's C library does:
// at least as exact as the hardware's, so not bit-equal to it.
#include "softgpu/engine/ops/ops_common.h"

namespace softgpu::SOFTGPU_ISA {
namespace {

// The one NaN that single precision gives. Sums and products keep the host's, whose sign differs:
// asking each of them would cost a tenth of their time. Double precision has the host's.
inline float Canonical(float a) { return a == a ? a : std::bit_cast<float>(0x7fffffffu); }
inline double Canonical(double a) { return a; }

struct Add {
  template <class T>
  T operator()(T a, T b) const {
    return a + b;
  }
};
struct Sub {
  template <class T>
  T operator()(T a, T b) const {
    return a - b;
  }
};
struct Mul {
  template <class T>
  T operator()(T a, T b) const {
    return a * b;
  }
};
struct Div {
  template <class T>
  T operator()(T a, T b) const {
    return Canonical(a / b);
  }
};
struct Fma {
  template <class T>
  T operator()(T a, T b, T c) const {
    return std::fma(a, b, c);
  }
};
// Of a number and a NaN the number; -0 is less than +0.
struct Min {
  template <class T>
  T operator()(T a, T b) const {
    if (a != a) return Canonical(b);
    if (b != b) return a;
    if (a == b) return std::signbit(a) ? a : b;
    return a < b ? a : b;
  }
};
struct Max {
  template <class T>
  T operator()(T a, T b) const {
    if (a != a) return Canonical(b);
    if (b != b) return a;
    if (a == b) return std::signbit(a) ? b : a;
    return a > b ? a : b;
  }
};
// Of the magnitudes, with the sign of the product.
template <class Op>
struct ExclusiveSign {
  template <class T>
  T operator()(T a, T b) const {
    T sign = std::signbit(a) != std::signbit(b) ? T{-1} : T{1};
    return std::copysign(Op()(std::fabs(a), std::fabs(b)), sign);
  }
};
template <class Op>
struct PropagateNan {
  template <class T>
  T operator()(T a, T b) const {
    return a != a ? Canonical(a) : b != b ? Canonical(b) : Op()(a, b);
  }
};
struct Neg {
  template <class T>
  T operator()(T a) const {
    return -a;
  }
};
struct Abs {
  template <class T>
  T operator()(T a) const {
    return std::fabs(a);
  }
};
struct Sqrt {
  template <class T>
  T operator()(T a) const {
    return Canonical(std::sqrt(a));
  }
};
struct Reciprocal {
  template <class T>
  T operator()(T a) const {
    return Canonical(T{1} / a);
  }
};
struct ReciprocalSqrt {
  float operator()(float a) const {
    return Canonical(static_cast<float>(1.0 / std::sqrt(double{a})));
  }
  double operator()(double a) const { return 1.0 / std::sqrt(a); }
};
struct Sin {
  float operator()(float a) const { return Canonical(std::sin(a)); }
};
struct Cos {
  float operator()(float a) const { return Canonical(std::cos(a)); }
};
struct Tanh {
  float operator()(float a) const { return Canonical(std::tanh(a)); }
};
struct ExpTwo {
  float operator()(float a) const { return Canonical(std::exp2(a)); }
};
struct LogTwo {
  float operator()(float a) const { return Canonical(std::log2(a)); }
};
struct CopySign {  // PTX gives the sign first
  template <class T>
  T operator()(T a, T b) const {
    return std::copysign(b, a);
  }
};
struct Saturate {
  template <class T>
  T operator()(T a) const {
    return a > T{0} ? (a < T{1} ? a : T{1}) : T{0};
  }
};

enum class Class { kFinite, kInfinite, kNumber, kNotANumber, kNormal, kSubnormal };
template <Class kClass, class T>
void TestClass(Warp& w, const Instruction& ins) {
  const auto* a = w.Reg<T>(ins.op[1]);
  uint32_t result = 0;
  ForEachLane(w.exec, [&](int i) {
    int is = std::fpclassify(a[i]);
    bool yes = kClass == Class::kFinite       ? is != FP_NAN && is != FP_INFINITE
               : kClass == Class::kInfinite   ? is == FP_INFINITE
               : kClass == Class::kNumber     ? is != FP_NAN
               : kClass == Class::kNotANumber ? is == FP_NAN
               : kClass == Class::kNormal     ? is == FP_NORMAL || is == FP_ZERO
                                              : is == FP_SUBNORMAL;
    if (yes) result |= 1u << i;
  });
  SetPredicate(w, ins.op[0], result);
}

constexpr OpEntry kOps[] = {
    One<Abs, float>("abs.f32"),
    One<Abs, double>("abs.f64"),
    Two<Add, float>("add.f32"),
    Two<Add, double>("add.f64"),
    Two<CopySign, float>("copysign.f32"),
    Two<CopySign, double>("copysign.f64"),
    One<Cos, float>("cos.f32"),
    Two<Div, float>("div.f32"),
    Two<Div, double>("div.f64"),
    One<ExpTwo, float>("ex2.f32"),
    Three<Fma, float>("fma.f32"),
    Three<Fma, double>("fma.f64"),
    One<LogTwo, float>("lg2.f32"),
    Three<Fma, float>("mad.f32"),
    Three<Fma, double>("mad.f64"),
    Two<PropagateNan<Max>, float>("max.NaN.f32"),
    Two<ExclusiveSign<PropagateNan<Max>>, float>("max.NaN.xorsign.abs.f32"),
    Two<Max, float>("max.f32"),
    Two<Max, double>("max.f64"),
    Two<ExclusiveSign<Max>, float>("max.xorsign.abs.f32"),
    Two<PropagateNan<Min>, float>("min.NaN.f32"),
    Two<ExclusiveSign<PropagateNan<Min>>, float>("min.NaN.xorsign.abs.f32"),
    Two<Min, float>("min.f32"),
    Two<Min, double>("min.f64"),
    Two<ExclusiveSign<Min>, float>("min.xorsign.abs.f32"),
    Two<Mul, float>("mul.f32"),
    Two<Mul, double>("mul.f64"),
    One<Neg, float>("neg.f32"),
    One<Neg, double>("neg.f64"),
    One<Reciprocal, float>("rcp.f32"),
    One<Reciprocal, double>("rcp.f64"),
    One<ReciprocalSqrt, float>("rsqrt.f32"),
    One<ReciprocalSqrt, double>("rsqrt.f64"),
    One<Saturate, float>("sat.f32"),
    One<Saturate, double>("sat.f64"),
    One<Sin, float>("sin.f32"),
    One<Sqrt, float>("sqrt.f32"),
    One<Sqrt, double>("sqrt.f64"),
    Two<Sub, float>("sub.f32"),
    Two<Sub, double>("sub.f64"),
    One<Tanh, float>("tanh.f32"),
    {"testp.finite.f32", "pf", TestClass<Class::kFinite, float>},
    {"testp.finite.f64", "pd", TestClass<Class::kFinite, double>},
    {"testp.infinite.f32", "pf", TestClass<Class::kInfinite, float>},
    {"testp.infinite.f64", "pd", TestClass<Class::kInfinite, double>},
    {"testp.normal.f32", "pf", TestClass<Class::kNormal, float>},
    {"testp.normal.f64", "pd", TestClass<Class::kNormal, double>},
    {"testp.notanumber.f32", "pf", TestClass<Class::kNotANumber, float>},
    {"testp.notanumber.f64", "pd", TestClass<Class::kNotANumber, double>},
    {"testp.number.f32", "pf", TestClass<Class::kNumber, float>},
    {"testp.number.f64", "pd", TestClass<Class::kNumber, double>},
    {"testp.subnormal.f32", "pf", TestClass<Class::kSubnormal, float>},
    {"testp.subnormal.f64", "pd", TestClass<Class::kSubnormal, double>},
};

}  // namespace

std::span<const OpEntry> FloatOps() { return kOps; }

}  // namespace softgpu::SOFTGPU_ISA
