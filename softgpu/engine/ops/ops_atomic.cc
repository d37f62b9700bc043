// atom and red: sequentially consistent host atomics, one lane after another.
#include <atomic>

#include "softgpu/engine/ops/memory_access.h"

namespace softgpu::SOFTGPU_ISA {
namespace {

struct Add {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, Bfloat>) {
      return FromFloat<T>(ToFloat(a) + ToFloat(b));
    } else {
      return a + b;
    }
  }
};
template <bool kMinimum>
struct Extreme {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, Bfloat>) {
      return (ToFloat(b) < ToFloat(a)) == kMinimum ? b : a;
    } else {
      return (b < a) == kMinimum ? b : a;
    }
  }
};
using Min = Extreme<true>;
using Max = Extreme<false>;
struct And {
  template <class T>
  T operator()(T a, T b) const {
    return a & b;
  }
};
struct Or {
  template <class T>
  T operator()(T a, T b) const {
    return a | b;
  }
};
struct Xor {
  template <class T>
  T operator()(T a, T b) const {
    return a ^ b;
  }
};
struct Exchange {
  template <class T>
  T operator()(T, T b) const {
    return b;
  }
};
struct Increment {
  template <class T>
  T operator()(T a, T b) const {
    return a >= b ? 0 : a + 1;
  }
};
struct Decrement {
  template <class T>
  T operator()(T a, T b) const {
    return a == 0 || a > b ? b : a - 1;
  }
};
template <class Op, class T>
struct EachHalf {
  uint32_t operator()(uint32_t a, uint32_t b) const {
    uint32_t low = Pack<T>(Op()(Unpack<T>(a), Unpack<T>(b)));
    return low | Pack<T>(Op()(Unpack<T>(a >> 16), Unpack<T>(b >> 16))) << 16;
  }
};

template <class T>
using Bits = std::conditional_t<sizeof(T) == 8, uint64_t,
                                std::conditional_t<sizeof(T) == 4, uint32_t, uint16_t>>;

template <class Op, class T>
Storage<T> Update(uint64_t address, Storage<T> operand) {
  auto* p = reinterpret_cast<Bits<T>*>(address);
  if constexpr (std::is_integral_v<T> && std::is_same_v<Op, Add>) {
    return __atomic_fetch_add(p, static_cast<Bits<T>>(operand), __ATOMIC_SEQ_CST);
  } else if constexpr (std::is_same_v<Op, Exchange>) {
    return __atomic_exchange_n(p, static_cast<Bits<T>>(operand), __ATOMIC_SEQ_CST);
  } else {
    Bits<T> old = __atomic_load_n(p, __ATOMIC_RELAXED);
    while (true) {
      auto next = static_cast<Bits<T>>(Pack<T>(Op()(Unpack<T>(old), Unpack<T>(operand))));
      if (__atomic_compare_exchange_n(p, &old, next, true, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
        return old;
      }
    }
  }
}

template <bool kShared>
bool Locate(Warp& w, const Instruction& ins, uint64_t bytes, Addresses& at) {
  if ((ins.extra & kAccessPolls) != 0) CountPoll(w);
  return kShared ? SharedAddresses(w, ins, bytes, at) : GenericAddresses(w, ins, bytes, at);
}

template <class Op, class T, bool kShared>
void Atomic(Warp& w, const Instruction& ins) {
  Addresses at;
  if (!Locate<kShared>(w, ins, sizeof(T), at)) return;
  auto* d = w.Reg<Storage<T>>(ins.op[0]);
  const auto* b = w.Reg<Storage<T>>(ins.op[1]);
  ForEachLane(w.exec, [&](int i) { d[i] = Update<Op, T>(at.lane[i], b[i]); });
}

template <class T, bool kShared>
void CompareAndSwap(Warp& w, const Instruction& ins) {
  Addresses at;
  if (!Locate<kShared>(w, ins, sizeof(T), at)) return;
  auto* d = w.Reg<Storage<T>>(ins.op[0]);
  const auto* b = w.Reg<Storage<T>>(ins.op[1]);
  const auto* c = w.Reg<Storage<T>>(ins.op[2]);
  ForEachLane(w.exec, [&](int i) {
    T expected = static_cast<T>(b[i]);
    __atomic_compare_exchange_n(reinterpret_cast<T*>(at.lane[i]), &expected, static_cast<T>(c[i]),
                                false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    d[i] = expected;
  });
}

// 16 bytes, in registers whose high halves stand behind the low ones. The CPU has no exchange of
// this size, so that is a comparison until nobody came between.
template <bool kCompares, bool kShared>
void AtomicWide(Warp& w, const Instruction& ins) {
  Addresses at;
  if (!Locate<kShared>(w, ins, 16, at)) return;
  auto* d = w.Reg<uint64_t>(ins.op[0]);
  const auto* b = w.Reg<uint64_t>(ins.op[1]);
  const auto* c = w.Reg<uint64_t>(ins.op[kCompares ? 2 : 1]);
  ForEachLane(w.exec, [&](int i) {
    auto* p = reinterpret_cast<uint64_t*>(at.lane[i]);
    const uint64_t low = c[i], high = c[i + kLanes];
    uint64_t old_low = kCompares ? b[i] : p[0], old_high = kCompares ? b[i + kLanes] : p[1];
    bool done = false;
    do {
      asm volatile("lock cmpxchg16b %1"
                   : "=@ccz"(done), "+m"(*reinterpret_cast<__int128*>(p)), "+a"(old_low),
                     "+d"(old_high)
                   : "b"(low), "c"(high)
                   : "memory");
    } while (!done && !kCompares);
    d[i] = old_low;
    d[i + kLanes] = old_high;
  });
}

// cp.reduce.async.bulk: each element of shared memory onto its counterpart elsewhere. op as of
// cp.bulk.store.
template <class Op, class T>
void ReduceBulk(Warp& w, const Instruction& ins) {
  ForEachPiece(w, ins, sizeof(T), [](uint32_t lanes, const Addresses& near, const Addresses& far) {
    ForEachLane(lanes, [&](int i) {
      Update<Op, T>(far.lane[i], *reinterpret_cast<const Bits<T>*>(near.lane[i]));
    });
  });
}

#define SOFTGPU_REDUCE(name, ...) \
  { "cp.bulk.reduce." name, nullptr, ReduceBulk<__VA_ARGS__> }
#define SOFTGPU_ATOMIC(name, ...)                           \
  {"atom." name, nullptr, Atomic<__VA_ARGS__, false>}, {    \
    "atom.shared." name, nullptr, Atomic<__VA_ARGS__, true> \
  }
#define SOFTGPU_CAS(name, type)                                  \
  {"atom.cas." name, nullptr, CompareAndSwap<type, false>}, {    \
    "atom.shared.cas." name, nullptr, CompareAndSwap<type, true> \
  }
#define SOFTGPU_MINMAX(name, op)                                                            \
  SOFTGPU_ATOMIC(name ".s32", op, int32_t), SOFTGPU_ATOMIC(name ".s64", op, int64_t),       \
      SOFTGPU_ATOMIC(name ".u32", op, uint32_t), SOFTGPU_ATOMIC(name ".u64", op, uint64_t), \
      SOFTGPU_ATOMIC(name ".f16x2", EachHalf<op, Half>, uint32_t),                          \
      SOFTGPU_ATOMIC(name ".bf16x2", EachHalf<op, Bfloat>, uint32_t)

constexpr OpEntry kOps[] = {
    SOFTGPU_ATOMIC("add.b32", Add, uint32_t),
    SOFTGPU_ATOMIC("add.b64", Add, uint64_t),
    SOFTGPU_ATOMIC("add.bf16", Add, Bfloat),
    SOFTGPU_ATOMIC("add.bf16x2", EachHalf<Add, Bfloat>, uint32_t),
    SOFTGPU_ATOMIC("add.f16", Add, Half),
    SOFTGPU_ATOMIC("add.f16x2", EachHalf<Add, Half>, uint32_t),
    SOFTGPU_ATOMIC("add.f32", Add, float),
    SOFTGPU_ATOMIC("add.f64", Add, double),
    SOFTGPU_ATOMIC("and.b32", And, uint32_t),
    SOFTGPU_ATOMIC("and.b64", And, uint64_t),
    {"atom.cas.b128", nullptr, AtomicWide<true, false>},
    {"atom.exch.b128", nullptr, AtomicWide<false, false>},
    {"atom.shared.cas.b128", nullptr, AtomicWide<true, true>},
    {"atom.shared.exch.b128", nullptr, AtomicWide<false, true>},
    SOFTGPU_REDUCE("add.b32", Add, uint32_t),
    SOFTGPU_REDUCE("add.b64", Add, uint64_t),
    SOFTGPU_REDUCE("add.bf16", Add, Bfloat),
    SOFTGPU_REDUCE("add.f16", Add, Half),
    SOFTGPU_REDUCE("add.f32", Add, float),
    SOFTGPU_REDUCE("add.f64", Add, double),
    SOFTGPU_REDUCE("and.b32", And, uint32_t),
    SOFTGPU_REDUCE("and.b64", And, uint64_t),
    SOFTGPU_REDUCE("dec.b32", Decrement, uint32_t),
    SOFTGPU_REDUCE("inc.b32", Increment, uint32_t),
    SOFTGPU_REDUCE("max.bf16", Max, Bfloat),
    SOFTGPU_REDUCE("max.f16", Max, Half),
    SOFTGPU_REDUCE("max.s32", Max, int32_t),
    SOFTGPU_REDUCE("max.s64", Max, int64_t),
    SOFTGPU_REDUCE("max.u32", Max, uint32_t),
    SOFTGPU_REDUCE("max.u64", Max, uint64_t),
    SOFTGPU_REDUCE("min.bf16", Min, Bfloat),
    SOFTGPU_REDUCE("min.f16", Min, Half),
    SOFTGPU_REDUCE("min.s32", Min, int32_t),
    SOFTGPU_REDUCE("min.s64", Min, int64_t),
    SOFTGPU_REDUCE("min.u32", Min, uint32_t),
    SOFTGPU_REDUCE("min.u64", Min, uint64_t),
    SOFTGPU_REDUCE("or.b32", Or, uint32_t),
    SOFTGPU_REDUCE("or.b64", Or, uint64_t),
    SOFTGPU_REDUCE("xor.b32", Xor, uint32_t),
    SOFTGPU_REDUCE("xor.b64", Xor, uint64_t),
    SOFTGPU_CAS("b16", uint16_t),
    SOFTGPU_CAS("b32", uint32_t),
    SOFTGPU_CAS("b64", uint64_t),
    SOFTGPU_ATOMIC("dec.b32", Decrement, uint32_t),
    SOFTGPU_ATOMIC("exch.b32", Exchange, uint32_t),
    SOFTGPU_ATOMIC("exch.b64", Exchange, uint64_t),
    SOFTGPU_ATOMIC("inc.b32", Increment, uint32_t),
    SOFTGPU_MINMAX("max", Max),
    SOFTGPU_MINMAX("min", Min),
    SOFTGPU_ATOMIC("or.b32", Or, uint32_t),
    SOFTGPU_ATOMIC("or.b64", Or, uint64_t),
    SOFTGPU_ATOMIC("xor.b32", Xor, uint32_t),
    SOFTGPU_ATOMIC("xor.b64", Xor, uint64_t),
};

}  // namespace

std::span<const OpEntry> AtomicOps() { return kOps; }

}  // namespace softgpu::SOFTGPU_ISA
