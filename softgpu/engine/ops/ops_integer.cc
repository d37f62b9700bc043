// Integer arithmetic, bits and carry chains.
#include "softgpu/engine/ops/ops_common.h"

namespace softgpu::SOFTGPU_ISA {
namespace {

using u16 = uint16_t;
using u32 = uint32_t;
using u64 = uint64_t;
using s16 = int16_t;
using s32 = int32_t;
using s64 = int64_t;

// Defines an operation as a function object with one generic call operator.
#define SOFTGPU_OP1(name, expression) \
  struct name {                       \
    template <class T>                \
    auto operator()(T a) const {      \
      return expression;              \
    }                                 \
  }
#define SOFTGPU_OP2(name, expression) \
  struct name {                       \
    template <class T, class U>       \
    auto operator()(T a, U b) const { \
      return expression;              \
    }                                 \
  }
#define SOFTGPU_OP3(name, expression)      \
  struct name {                            \
    template <class T, class U, class V>   \
    auto operator()(T a, U b, V c) const { \
      return expression;                   \
    }                                      \
  }

template <class T>
using Wide = std::conditional_t<
    sizeof(T) == 2, std::conditional_t<std::is_signed_v<T>, s32, u32>,
    std::conditional_t<sizeof(T) == 4, std::conditional_t<std::is_signed_v<T>, s64, u64>,
                       std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>>>;

template <class T>
T High(T a, T b) {
  return static_cast<T>(static_cast<Wide<T>>(a) * b >> (sizeof(T) * 8));
}

SOFTGPU_OP2(Add, static_cast<T>(a + b));
SOFTGPU_OP2(Sub, static_cast<T>(a - b));
SOFTGPU_OP2(MulLow, static_cast<T>(static_cast<u64>(a) * b));
SOFTGPU_OP2(MulHigh, High(a, b));
SOFTGPU_OP2(MulWide, static_cast<Wide<T>>(static_cast<Wide<T>>(a) * b));
SOFTGPU_OP3(MadLow, static_cast<T>(static_cast<u64>(a) * b + c));
SOFTGPU_OP3(MadHigh, static_cast<T>(static_cast<std::make_unsigned_t<T>>(High(a, b)) + c));
SOFTGPU_OP3(MadWide, static_cast<u64>(static_cast<Wide<T>>(a) * b) + c);
SOFTGPU_OP2(Min, a < b ? a : b);
SOFTGPU_OP2(Max, a > b ? a : b);
SOFTGPU_OP1(Neg, static_cast<T>(u64{0} - static_cast<u64>(a)));
SOFTGPU_OP1(Abs, static_cast<T>(a < 0 ? u64{0} - static_cast<u64>(a) : static_cast<u64>(a)));
SOFTGPU_OP2(And, static_cast<T>(a& b));
SOFTGPU_OP2(Or, static_cast<T>(a | b));
SOFTGPU_OP2(Xor, static_cast<T>(a ^ b));
SOFTGPU_OP1(Not, static_cast<T>(~a));
SOFTGPU_OP1(LogicalNot, static_cast<T>(a == 0));

// Division by zero gives all ones, quotient and remainder, as an H200 does; it never traps.
struct Div {
  template <class T>
  T operator()(T a, T b) const {
    if (b == 0) return static_cast<T>(~T{0});
    if (std::is_signed_v<T> && b == static_cast<T>(-1)) return Neg()(a);
    return static_cast<T>(a / b);
  }
};
struct Rem {
  template <class T>
  T operator()(T a, T b) const {
    if (b == 0) return static_cast<T>(~T{0});
    if (std::is_signed_v<T> && b == static_cast<T>(-1)) return 0;
    return static_cast<T>(a % b);
  }
};
struct ShiftLeft {
  template <class T>
  T operator()(T a, u32 b) const {
    return b >= sizeof(T) * 8 ? T{0} : static_cast<T>(static_cast<u64>(a) << (b & 63));
  }
};
struct ShiftRight {
  template <class T>
  T operator()(T a, u32 b) const {
    constexpr u32 kHighestBit = sizeof(T) * 8 - 1;
    if (std::is_signed_v<T>) return static_cast<T>(a >> (b > kHighestBit ? kHighestBit : b));
    return b > kHighestBit ? T{0} : static_cast<T>(a >> b);
  }
};
SOFTGPU_OP1(PopCount, static_cast<u32>(std::popcount(a)));
SOFTGPU_OP1(LeadingZeros, static_cast<u32>(std::countl_zero(a)));
struct BitReverse {
  template <class T>
  T operator()(T a) const {
    u64 r = a;
    r = (r >> 1 & 0x5555555555555555) | (r & 0x5555555555555555) << 1;
    r = (r >> 2 & 0x3333333333333333) | (r & 0x3333333333333333) << 2;
    r = (r >> 4 & 0x0f0f0f0f0f0f0f0f) | (r & 0x0f0f0f0f0f0f0f0f) << 4;
    r = __builtin_bswap64(r);
    return static_cast<T>(r >> (64 - sizeof(T) * 8));
  }
};
template <bool kShiftAmount>
struct FindLeading {
  template <class T>
  u32 operator()(T a) const {
    using U = std::make_unsigned_t<T>;
    auto bits = static_cast<U>(std::is_signed_v<T> && a < 0 ? ~a : a);
    if (bits == 0) return kAllLanes;
    auto zeros = static_cast<u32>(std::countl_zero(bits));
    return kShiftAmount ? zeros : static_cast<u32>(sizeof(T) * 8 - 1) - zeros;
  }
};
struct FieldExtract {
  template <class T>
  T operator()(T a, u32 b, u32 c) const {
    constexpr u32 kBits = sizeof(T) * 8;
    using U = std::make_unsigned_t<T>;
    u32 position = b & 0xff;
    u32 length = c & 0xff;
    if (length == 0) return 0;
    u32 top = position + length - 1 < kBits - 1 ? position + length - 1 : kBits - 1;
    bool sign = std::is_signed_v<T> && (static_cast<U>(a) >> top & 1) != 0;
    U field = position >= kBits ? U{0} : static_cast<U>(static_cast<U>(a) >> position);
    if (length < kBits) {
      U keep = static_cast<U>((U{1} << length) - 1);
      if (position + length > kBits) {
        keep = position >= kBits ? U{0} : static_cast<U>(~U{0} >> position);
      }
      field = static_cast<U>(sign ? field | ~keep : field & keep);
    } else if (sign && position > 0) {
      field = position >= kBits ? ~U{0} : static_cast<U>(field | ~(~U{0} >> position));
    }
    return static_cast<T>(field);
  }
};
struct FieldInsertMask {
  template <class T>
  static T Mask(u32 position, u32 length) {
    constexpr u32 kBits = sizeof(T) * 8;
    if (position >= kBits || length == 0) return 0;
    T mask = length >= kBits ? ~T{0} : static_cast<T>((T{1} << length) - 1);
    return static_cast<T>(mask << position);
  }
};
template <class T>
void FieldInsert(Warp& w, const Instruction& ins) {
  auto* d = w.Reg<T>(ins.op[0]);
  const auto* a = w.Reg<T>(ins.op[1]);
  const auto* b = w.Reg<T>(ins.op[2]);
  const auto* c = w.Reg<u32>(ins.op[3]);
  const auto* e = w.Reg<u32>(ins.op[4]);
  Lanes(w, [=](int i) {
    u32 position = c[i] & 0xff;
    T mask = FieldInsertMask::Mask<T>(position, e[i] & 0xff);
    T shifted = position >= sizeof(T) * 8 ? T{0} : static_cast<T>(a[i] << position);
    d[i] = (b[i] & ~mask) | (shifted & mask);
  });
}

u32 FunnelLeft(u64 both, u32 n) { return static_cast<u32>(both << n >> 32); }
u32 FunnelRight(u64 both, u32 n) { return static_cast<u32>(both >> n); }
SOFTGPU_OP3(FunnelLeftWrap, FunnelLeft(static_cast<u64>(b) << 32 | a, c & 31));
SOFTGPU_OP3(FunnelRightWrap, FunnelRight(static_cast<u64>(b) << 32 | a, c & 31));
SOFTGPU_OP3(FunnelLeftClamp, FunnelLeft(static_cast<u64>(b) << 32 | a, c > 32 ? 32 : c));
SOFTGPU_OP3(FunnelRightClamp, FunnelRight(static_cast<u64>(b) << 32 | a, c > 32 ? 32 : c));

struct Permute {
  u32 operator()(u32 a, u32 b, u32 c) const {
    u64 bytes = static_cast<u64>(b) << 32 | a;
    u32 result = 0;
    for (u32 i = 0; i < 4; ++i) {
      u32 selector = c >> (4 * i) & 15;
      auto byte = static_cast<u32>(bytes >> (8 * (selector & 7)) & 0xff);
      if ((selector & 8) != 0) byte = (byte & 0x80) != 0 ? 0xff : 0;
      result |= byte << (8 * i);
    }
    return result;
  }
};
enum class PermuteMode { kF4e, kB4e, kRc8, kEcl, kEcr, kRc16 };
template <PermuteMode kMode>
struct PermuteIn {
  u32 operator()(u32 a, u32 b, u32 c) const {
    static constexpr u32 kSelectors[6][4] = {
        {0x3210, 0x4321, 0x5432, 0x6543}, {0x5670, 0x6701, 0x7012, 0x0123},
        {0x0000, 0x1111, 0x2222, 0x3333}, {0x3210, 0x3211, 0x3222, 0x3333},
        {0x0000, 0x1110, 0x2210, 0x3210}, {0x1010, 0x3232, 0x1010, 0x3232}};
    return Permute()(a, b, kSelectors[static_cast<int>(kMode)][c & 3]);
  }
};
// The place of the n-th set bit from `base` on, upwards or, with a negative n, downwards; 0 asks
// for that very bit. All ones: there is none.
struct FindNthSet {
  u32 operator()(u32 mask, u32 base, s32 n) const {
    if (n == 0) return base < 32 && (mask >> base & 1) != 0 ? base : ~u32{0};
    u32 left = static_cast<u32>(n < 0 ? -n : n);
    for (u32 at = base; at<32; n> 0 ? ++at : --at) {  // below 0 it wraps around, out of range
      if ((mask >> at & 1) != 0 && --left == 0) return at;
    }
    return ~u32{0};
  }
};
SOFTGPU_OP3(SumOfDifferences, static_cast<T>(c + (a < b ? b - a : a - b)));
SOFTGPU_OP2(MulLow24, static_cast<T>(((a << 8) >> 8) * ((b << 8) >> 8)));
SOFTGPU_OP3(MadLow24, static_cast<T>(((a << 8) >> 8) * ((b << 8) >> 8) + c));
SOFTGPU_OP2(MulHigh24, static_cast<T>(static_cast<Wide<T>>((a << 8) >> 8) * ((b << 8) >> 8) >> 16));
SOFTGPU_OP3(MadHigh24, static_cast<T>(MulHigh24()(a, b) + c));
SOFTGPU_OP2(MinNotNegative, a < b ? (a < 0 ? T{0} : a) : (b < 0 ? T{0} : b));
SOFTGPU_OP2(MaxNotNegative, a > b ? (a < 0 ? T{0} : a) : (b < 0 ? T{0} : b));
SOFTGPU_OP2(AddSaturated, static_cast<s32>(a > 0 && b > INT32_MAX - a   ? INT32_MAX
                                           : a < 0 && b < INT32_MIN - a ? INT32_MIN
                                                                        : a + b));
SOFTGPU_OP2(SubSaturated, static_cast<s32>(b<0 && a> INT32_MAX + b      ? INT32_MAX
                                           : b > 0 && a < INT32_MIN + b ? INT32_MIN
                                                                        : a - b));
SOFTGPU_OP3(MadHighSaturated, AddSaturated()(High(a, b), c));
SOFTGPU_OP3(MadHigh24Saturated, AddSaturated()(MulHigh24()(a, b), c));
// Three inputs and a truth table, which is an immediate in op[4].
void LogicThree(Warp& w, const Instruction& ins) {
  auto* d = w.Reg<u32>(ins.op[0]);
  const auto* a = w.Reg<u32>(ins.op[1]);
  const auto* b = w.Reg<u32>(ins.op[2]);
  const auto* c = w.Reg<u32>(ins.op[3]);
  u32 table = w.Reg<u32>(ins.op[4])[0];
  Lanes(w, [=](int i) {
    u32 result = 0;
    for (u32 row = 0; row < 8; ++row) {
      u32 match = ((row & 4) != 0 ? a[i] : ~a[i]) & ((row & 2) != 0 ? b[i] : ~b[i]) &
                  ((row & 1) != 0 ? c[i] : ~c[i]);
      result |= (table >> row & 1) != 0 ? match : 0;
    }
    d[i] = result;
  });
}

// a + b + carry and its relatives: op[5] carry in, op[6] carry out. As the hardware does it, a
// subtraction adds the complement: its carry says that nothing was borrowed.
enum class Chain { kAdd, kSub, kMadLow, kMadHigh };
template <Chain kChain, class T, bool kOut>
void Carry(Warp& w, const Instruction& ins) {
  using U = std::make_unsigned_t<T>;
  auto* d = w.Reg<U>(ins.op[0]);
  const auto* a = w.Reg<T>(ins.op[1]);
  const auto* b = w.Reg<T>(ins.op[2]);
  const auto* c = w.Reg<U>(ins.op[3]);
  const auto* in = w.Reg<u32>(ins.op[5]);
  auto* out = w.Reg<u32>(ins.op[6]);
  ForEachLane(w.exec, [=](int i) {
    U x = static_cast<U>(a[i]);
    U y = static_cast<U>(b[i]);
    if constexpr (kChain == Chain::kMadLow) x = static_cast<U>(x * y);
    if constexpr (kChain == Chain::kMadHigh) x = static_cast<U>(High(a[i], b[i]));
    if constexpr (kChain == Chain::kMadLow || kChain == Chain::kMadHigh) y = c[i];
    if constexpr (kChain == Chain::kSub) y = static_cast<U>(~y);
    U first = x + y;
    U second = first + static_cast<U>(in[i]);
    d[i] = second;
    if (kOut) out[i] = first < x || second < first ? 1 : 0;
  });
}

constexpr OpEntry kOps[] = {
    {"add.c.u32", nullptr, Carry<Chain::kAdd, u32, false>},
    {"add.c.u64", nullptr, Carry<Chain::kAdd, u64, false>},
    {"add.cc.u32", nullptr, Carry<Chain::kAdd, u32, true>},
    {"add.cc.u64", nullptr, Carry<Chain::kAdd, u64, true>},
    {"bfi.b32", "iiiii", FieldInsert<u32>},
    {"bfi.b64", "lllii", FieldInsert<u64>},
    {"lop3.b32", "iiiii", LogicThree},
    {"mad.hi.c.s32", nullptr, Carry<Chain::kMadHigh, s32, false>},
    {"mad.hi.c.s64", nullptr, Carry<Chain::kMadHigh, s64, false>},
    {"mad.hi.c.u32", nullptr, Carry<Chain::kMadHigh, u32, false>},
    {"mad.hi.c.u64", nullptr, Carry<Chain::kMadHigh, u64, false>},
    {"mad.hi.cc.s32", nullptr, Carry<Chain::kMadHigh, s32, true>},
    {"mad.hi.cc.s64", nullptr, Carry<Chain::kMadHigh, s64, true>},
    {"mad.hi.cc.u32", nullptr, Carry<Chain::kMadHigh, u32, true>},
    {"mad.hi.cc.u64", nullptr, Carry<Chain::kMadHigh, u64, true>},
    {"mad.lo.c.u32", nullptr, Carry<Chain::kMadLow, u32, false>},
    {"mad.lo.c.u64", nullptr, Carry<Chain::kMadLow, u64, false>},
    {"mad.lo.cc.u32", nullptr, Carry<Chain::kMadLow, u32, true>},
    {"mad.lo.cc.u64", nullptr, Carry<Chain::kMadLow, u64, true>},
    {"sub.c.u32", nullptr, Carry<Chain::kSub, u32, false>},
    {"sub.c.u64", nullptr, Carry<Chain::kSub, u64, false>},
    {"sub.cc.u32", nullptr, Carry<Chain::kSub, u32, true>},
    {"sub.cc.u64", nullptr, Carry<Chain::kSub, u64, true>},
    One<Abs, s16>("abs.s16"),
    One<Abs, s32>("abs.s32"),
    One<Abs, s64>("abs.s64"),
    Two<AddSaturated, s32>("add.sat.s32"),
    Two<Add, u16>("add.u16"),
    Two<Add, u32>("add.u32"),
    Two<Add, u64>("add.u64"),
    Two<And, u32>("and.b16"),
    Two<And, u32>("and.b32"),
    Two<And, u64>("and.b64"),
    Three<FieldExtract, s32, s32, u32>("bfe.s32"),
    Three<FieldExtract, s64, s64, u32>("bfe.s64"),
    Three<FieldExtract, u32>("bfe.u32"),
    Three<FieldExtract, u64, u64, u32>("bfe.u64"),
    One<FindLeading<false>, u32, s32>("bfind.s32"),
    One<FindLeading<false>, u32, s64>("bfind.s64"),
    One<FindLeading<true>, u32, s32>("bfind.shiftamt.s32"),
    One<FindLeading<true>, u32, s64>("bfind.shiftamt.s64"),
    One<FindLeading<true>, u32>("bfind.shiftamt.u32"),
    One<FindLeading<true>, u32, u64>("bfind.shiftamt.u64"),
    One<FindLeading<false>, u32>("bfind.u32"),
    One<FindLeading<false>, u32, u64>("bfind.u64"),
    One<BitReverse, u32>("brev.b32"),
    One<BitReverse, u64>("brev.b64"),
    One<LeadingZeros, u32>("clz.b32"),
    One<LeadingZeros, u32, u64>("clz.b64"),
    One<LogicalNot, u16>("cnot.b16"),
    One<LogicalNot, u32>("cnot.b32"),
    One<LogicalNot, u64>("cnot.b64"),
    Two<Div, s16>("div.s16"),
    Two<Div, s32>("div.s32"),
    Two<Div, s64>("div.s64"),
    Two<Div, u16>("div.u16"),
    Two<Div, u32>("div.u32"),
    Two<Div, u64>("div.u64"),
    Three<FindNthSet, u32, u32, u32, s32>("fns.b32"),
    Three<MadHigh, s32>("mad.hi.s32"),
    Three<MadHigh, s64>("mad.hi.s64"),
    Three<MadHighSaturated, s32>("mad.hi.sat.s32"),
    Three<MadHigh, u32>("mad.hi.u32"),
    Three<MadHigh, u64>("mad.hi.u64"),
    Three<MadLow, u16>("mad.lo.u16"),
    Three<MadLow, u32>("mad.lo.u32"),
    Three<MadLow, u64>("mad.lo.u64"),
    Three<MadWide, u32, s16, s16, u32>("mad.wide.s16"),
    Three<MadWide, u64, s32, s32, u64>("mad.wide.s32"),
    Three<MadWide, u32, u16, u16, u32>("mad.wide.u16"),
    Three<MadWide, u64, u32, u32, u64>("mad.wide.u32"),
    Three<MadHigh24, s32>("mad24.hi.s32"),
    Three<MadHigh24Saturated, s32>("mad24.hi.sat.s32"),
    Three<MadHigh24, u32>("mad24.hi.u32"),
    Three<MadLow24, s32>("mad24.lo.s32"),
    Three<MadLow24, u32>("mad24.lo.u32"),
    Two<MaxNotNegative, s32>("max.relu.s32"),
    Two<Max, s16>("max.s16"),
    Two<Max, s32>("max.s32"),
    Two<Max, s64>("max.s64"),
    Two<Max, u16>("max.u16"),
    Two<Max, u32>("max.u32"),
    Two<Max, u64>("max.u64"),
    Two<MinNotNegative, s32>("min.relu.s32"),
    Two<Min, s16>("min.s16"),
    Two<Min, s32>("min.s32"),
    Two<Min, s64>("min.s64"),
    Two<Min, u16>("min.u16"),
    Two<Min, u32>("min.u32"),
    Two<Min, u64>("min.u64"),
    Two<MulHigh, s16>("mul.hi.s16"),
    Two<MulHigh, s32>("mul.hi.s32"),
    Two<MulHigh, s64>("mul.hi.s64"),
    Two<MulHigh, u16>("mul.hi.u16"),
    Two<MulHigh, u32>("mul.hi.u32"),
    Two<MulHigh, u64>("mul.hi.u64"),
    Two<MulLow, u16>("mul.lo.u16"),
    Two<MulLow, u32>("mul.lo.u32"),
    Two<MulLow, u64>("mul.lo.u64"),
    Two<MulWide, s32, s16>("mul.wide.s16"),
    Two<MulWide, s64, s32>("mul.wide.s32"),
    Two<MulWide, u32, u16>("mul.wide.u16"),
    Two<MulWide, u64, u32>("mul.wide.u32"),
    Two<MulHigh24, s32>("mul24.hi.s32"),
    Two<MulHigh24, u32>("mul24.hi.u32"),
    Two<MulLow24, s32>("mul24.lo.s32"),
    Two<MulLow24, u32>("mul24.lo.u32"),
    One<Neg, s16>("neg.s16"),
    One<Neg, s32>("neg.s32"),
    One<Neg, s64>("neg.s64"),
    One<Not, u32>("not.b16"),
    One<Not, u32>("not.b32"),
    One<Not, u64>("not.b64"),
    Two<Or, u32>("or.b16"),
    Two<Or, u32>("or.b32"),
    Two<Or, u64>("or.b64"),
    One<PopCount, u32>("popc.b32"),
    One<PopCount, u32, u64>("popc.b64"),
    Three<Permute, u32>("prmt.b32"),
    Three<PermuteIn<PermuteMode::kB4e>, u32>("prmt.b32.b4e"),
    Three<PermuteIn<PermuteMode::kEcl>, u32>("prmt.b32.ecl"),
    Three<PermuteIn<PermuteMode::kEcr>, u32>("prmt.b32.ecr"),
    Three<PermuteIn<PermuteMode::kF4e>, u32>("prmt.b32.f4e"),
    Three<PermuteIn<PermuteMode::kRc16>, u32>("prmt.b32.rc16"),
    Three<PermuteIn<PermuteMode::kRc8>, u32>("prmt.b32.rc8"),
    Two<Rem, s16>("rem.s16"),
    Two<Rem, s32>("rem.s32"),
    Two<Rem, s64>("rem.s64"),
    Two<Rem, u16>("rem.u16"),
    Two<Rem, u32>("rem.u32"),
    Two<Rem, u64>("rem.u64"),
    Three<SumOfDifferences, s16>("sad.s16"),
    Three<SumOfDifferences, s32>("sad.s32"),
    Three<SumOfDifferences, s64>("sad.s64"),
    Three<SumOfDifferences, u16>("sad.u16"),
    Three<SumOfDifferences, u32>("sad.u32"),
    Three<SumOfDifferences, u64>("sad.u64"),
    Three<FunnelLeftClamp, u32>("shf.l.clamp.b32"),
    Three<FunnelLeftWrap, u32>("shf.l.wrap.b32"),
    Three<FunnelRightClamp, u32>("shf.r.clamp.b32"),
    Three<FunnelRightWrap, u32>("shf.r.wrap.b32"),
    Two<ShiftLeft, u16, u16, u32>("shl.b16"),
    Two<ShiftLeft, u32>("shl.b32"),
    Two<ShiftLeft, u64, u64, u32>("shl.b64"),
    Two<ShiftRight, u16, u16, u32>("shr.b16"),
    Two<ShiftRight, u32>("shr.b32"),
    Two<ShiftRight, u64, u64, u32>("shr.b64"),
    Two<ShiftRight, s16, s16, u32>("shr.s16"),
    Two<ShiftRight, s32, s32, u32>("shr.s32"),
    Two<ShiftRight, s64, s64, u32>("shr.s64"),
    Two<ShiftRight, u16, u16, u32>("shr.u16"),
    Two<ShiftRight, u32>("shr.u32"),
    Two<ShiftRight, u64, u64, u32>("shr.u64"),
    Two<SubSaturated, s32>("sub.sat.s32"),
    Two<Sub, u16>("sub.u16"),
    Two<Sub, u32>("sub.u32"),
    Two<Sub, u64>("sub.u64"),
    Two<Xor, u32>("xor.b16"),
    Two<Xor, u32>("xor.b32"),
    Two<Xor, u64>("xor.b64"),
};

}  // namespace

std::span<const OpEntry> IntegerOps() { return kOps; }

}  // namespace softgpu::SOFTGPU_ISA
