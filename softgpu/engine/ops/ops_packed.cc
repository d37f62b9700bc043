// Several small integers in one 32-bit register, and bit masks.
#include "softgpu/engine/ops/ops_common.h"

namespace softgpu::SOFTGPU_ISA {
namespace {

template <class A, class B>
struct DotFour {
  uint32_t operator()(uint32_t a, uint32_t b, uint32_t c) const {
    for (int i = 0; i < 32; i += 8) {
      c += static_cast<uint32_t>(static_cast<int32_t>(static_cast<A>(a >> i)) *
                                 static_cast<int32_t>(static_cast<B>(b >> i)));
    }
    return c;
  }
};

// Two 16-bit numbers of a times the low or high two 8-bit numbers of b.
template <class A, class B, int kFirst>
struct DotTwo {
  uint32_t operator()(uint32_t a, uint32_t b, uint32_t c) const {
    for (int i = 0; i < 2; ++i) {
      auto x = static_cast<int32_t>(static_cast<A>(a >> (16 * i)));
      auto y = static_cast<int32_t>(static_cast<B>(b >> (8 * (kFirst + i))));
      c += static_cast<uint32_t>(x) * static_cast<uint32_t>(y);
    }
    return c;
  }
};

// Applies Op to each 16-bit or 8-bit part.
template <class Op, class T>
struct Parts {
  uint32_t operator()(uint32_t a, uint32_t b) const {
    constexpr int kBits = sizeof(T) * 8;
    uint32_t result = 0;
    for (int i = 0; i < 32; i += kBits) {
      auto part = static_cast<std::make_unsigned_t<T>>(
          Op()(static_cast<T>(a >> i), static_cast<T>(b >> i)));
      result |= static_cast<uint32_t>(part) << i;
    }
    return result;
  }
};
struct Add {
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>(a + b);
  }
};
struct Min {
  template <class T>
  T operator()(T a, T b) const {
    return a < b ? a : b;
  }
};
struct Max {
  template <class T>
  T operator()(T a, T b) const {
    return a > b ? a : b;
  }
};
// The relu of both: what is negative becomes 0.
template <class Op>
struct Rectified {
  template <class T>
  T operator()(T a, T b) const {
    T result = Op()(a, b);
    return result < 0 ? T{0} : result;
  }
};
struct Difference {
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>(a < b ? b - a : a - b);
  }
};
// vabsdiff2 and vabsdiff4 d, a, b, c: c takes part only in the form that adds.
template <class T>
struct Differences {
  uint32_t operator()(uint32_t a, uint32_t b, uint32_t) const {
    return Parts<Difference, T>()(a, b);
  }
};
template <class T>
struct DifferencesSum {
  uint32_t operator()(uint32_t a, uint32_t b, uint32_t c) const {
    constexpr int kBits = sizeof(T) * 8;
    uint32_t parts = Parts<Difference, T>()(a, b);
    for (int i = 0; i < 32; i += kBits) c += parts >> i & ((1u << kBits) - 1);
    return c;
  }
};

// bmsk: b ones from bit a on; beyond 31 clamped or wrapped around.
template <bool kClamp>
struct BitMask {
  uint32_t operator()(uint32_t a, uint32_t b) const {
    if (!kClamp) {
      a &= 31;
      b &= 31;
    }
    if (a > 31 || b == 0) return 0;
    uint32_t ones = b > 31 ? ~0u : (1u << b) - 1;
    return ones << a;
  }
};
// szext: the low b bits of a, extended by sign or with zeros.
template <class T, bool kClamp>
struct Extend {
  T operator()(T a, uint32_t b) const {
    if (!kClamp) b &= 31;
    if (b == 0) return 0;
    if (b > 31) return a;
    auto up = static_cast<T>(static_cast<uint32_t>(a) << (32 - b));
    return up >> (32 - b);
  }
};

constexpr OpEntry kOps[] = {
    Two<Parts<Add, int16_t>, uint32_t>("add.s16x2"),
    Two<Parts<Add, uint16_t>, uint32_t>("add.u16x2"),
    Two<BitMask<true>, uint32_t>("bmsk.clamp.b32"),
    Two<BitMask<false>, uint32_t>("bmsk.wrap.b32"),
    Three<DotTwo<int16_t, int8_t, 2>, uint32_t>("dp2a.hi.s32.s32"),
    Three<DotTwo<int16_t, uint8_t, 2>, uint32_t>("dp2a.hi.s32.u32"),
    Three<DotTwo<uint16_t, int8_t, 2>, uint32_t>("dp2a.hi.u32.s32"),
    Three<DotTwo<uint16_t, uint8_t, 2>, uint32_t>("dp2a.hi.u32.u32"),
    Three<DotTwo<int16_t, int8_t, 0>, uint32_t>("dp2a.lo.s32.s32"),
    Three<DotTwo<int16_t, uint8_t, 0>, uint32_t>("dp2a.lo.s32.u32"),
    Three<DotTwo<uint16_t, int8_t, 0>, uint32_t>("dp2a.lo.u32.s32"),
    Three<DotTwo<uint16_t, uint8_t, 0>, uint32_t>("dp2a.lo.u32.u32"),
    Three<DotFour<int8_t, int8_t>, uint32_t>("dp4a.s32.s32"),
    Three<DotFour<int8_t, uint8_t>, uint32_t>("dp4a.s32.u32"),
    Three<DotFour<uint8_t, int8_t>, uint32_t>("dp4a.u32.s32"),
    Three<DotFour<uint8_t, uint8_t>, uint32_t>("dp4a.u32.u32"),
    Two<Parts<Max, int16_t>, uint32_t>("max.s16x2"),
    Two<Parts<Rectified<Max>, int16_t>, uint32_t>("max.s16x2.relu"),
    Two<Rectified<Max>, int32_t>("max.s32.relu"),
    Two<Parts<Max, uint16_t>, uint32_t>("max.u16x2"),
    Two<Parts<Min, int16_t>, uint32_t>("min.s16x2"),
    Two<Parts<Rectified<Min>, int16_t>, uint32_t>("min.s16x2.relu"),
    Two<Rectified<Min>, int32_t>("min.s32.relu"),
    Two<Parts<Min, uint16_t>, uint32_t>("min.u16x2"),
    Two<Extend<int32_t, true>, int32_t, int32_t, uint32_t>("szext.clamp.s32"),
    Two<Extend<uint32_t, true>, uint32_t>("szext.clamp.u32"),
    Two<Extend<int32_t, false>, int32_t, int32_t, uint32_t>("szext.wrap.s32"),
    Two<Extend<uint32_t, false>, uint32_t>("szext.wrap.u32"),
    Three<Differences<int16_t>, uint32_t>("vabsdiff2.s32.s32.s32"),
    Three<DifferencesSum<int16_t>, uint32_t>("vabsdiff2.s32.s32.s32.add"),
    Three<Differences<uint16_t>, uint32_t>("vabsdiff2.u32.u32.u32"),
    Three<DifferencesSum<uint16_t>, uint32_t>("vabsdiff2.u32.u32.u32.add"),
    Three<Differences<int8_t>, uint32_t>("vabsdiff4.s32.s32.s32"),
    Three<DifferencesSum<int8_t>, uint32_t>("vabsdiff4.s32.s32.s32.add"),
    Three<Differences<uint8_t>, uint32_t>("vabsdiff4.u32.u32.u32"),
    Three<DifferencesSum<uint8_t>, uint32_t>("vabsdiff4.u32.u32.u32.add"),
};

}  // namespace

std::span<const OpEntry> PackedOps() { return kOps; }

}  // namespace softgpu::SOFTGPU_ISA
