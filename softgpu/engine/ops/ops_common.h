// Templates that turn a function on values into a handler on warps. Everything here lives in the
// namespace of the instruction set that the including file is compiled for.
#pragma once

#ifndef SOFTGPU_ISA
#error "SOFTGPU_ISA names the namespace of the instruction set"
#endif

#include <bit>
#include <cmath>
#include <cstdint>
#include <span>
#include <type_traits>

#include "softgpu/engine/ops/ops_table.h"
#include "softgpu/engine/run/machine.h"

namespace softgpu::SOFTGPU_ISA {

// Half precision values: IEEE binary16, and bfloat16 kept as its bits.
using Half = _Float16;
struct Bfloat {
  uint16_t bits;
};

inline float ToFloat(Half h) { return static_cast<float>(h); }
inline float ToFloat(Bfloat b) { return std::bit_cast<float>(static_cast<uint32_t>(b.bits) << 16); }
inline float ToFloat(float f) { return f; }
template <class T>
T FromFloat(float f) {
  if constexpr (std::is_same_v<T, Bfloat>) {
    auto u = std::bit_cast<uint32_t>(f);
    if ((u & 0x7fffffff) > 0x7f800000) return Bfloat{0x7fff};
    return Bfloat{static_cast<uint16_t>((u + 0x7fff + (u >> 16 & 1)) >> 16)};
  } else {
    return static_cast<T>(f);
  }
}

// Registers hold 32 or 64 bits per lane; narrower values are extended as their sign says.
template <class T>
using Storage = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;

template <class T>
T Unpack(Storage<T> s) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(s);
  } else if constexpr (sizeof(T) == 2) {
    return std::bit_cast<T>(static_cast<uint16_t>(s));
  } else {
    return std::bit_cast<T>(s);
  }
}

template <class T>
Storage<T> Pack(T value) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<Storage<T>>(value);
  } else if constexpr (sizeof(T) == 2) {
    return std::bit_cast<uint16_t>(value);
  } else {
    return std::bit_cast<Storage<T>>(value);
  }
}

template <class F>
void ForEachLane(uint32_t mask, F f) {
  for (; mask != 0; mask &= mask - 1) f(std::countr_zero(mask));
}

// Runs f(lane) for the executing lanes; with all 32 as a loop for the vectoriser. Source and
// destination are whole registers: the same or disjoint.
template <class F>
inline __attribute__((always_inline)) void Lanes(const Warp& w, F f) {
  if (w.exec == kAllLanes) {
#pragma GCC ivdep
    for (int i = 0; i < kLanes; ++i) f(i);
  } else {
    ForEachLane(w.exec, f);
  }
}

template <class Op, class R, class A>
void Unary(Warp& w, const Instruction& ins) {
  auto* d = w.Reg<Storage<R>>(ins.op[0]);
  const auto* a = w.Reg<Storage<A>>(ins.op[1]);
  Lanes(w, [=](int i) { d[i] = Pack<R>(Op()(Unpack<A>(a[i]))); });
}

template <class Op, class R, class A, class B>
void Binary(Warp& w, const Instruction& ins) {
  auto* d = w.Reg<Storage<R>>(ins.op[0]);
  const auto* a = w.Reg<Storage<A>>(ins.op[1]);
  const auto* b = w.Reg<Storage<B>>(ins.op[2]);
  Lanes(w, [=](int i) { d[i] = Pack<R>(Op()(Unpack<A>(a[i]), Unpack<B>(b[i]))); });
}

template <class Op, class R, class A, class B, class C>
void Ternary(Warp& w, const Instruction& ins) {
  auto* d = w.Reg<Storage<R>>(ins.op[0]);
  const auto* a = w.Reg<Storage<A>>(ins.op[1]);
  const auto* b = w.Reg<Storage<B>>(ins.op[2]);
  const auto* c = w.Reg<Storage<C>>(ins.op[3]);
  Lanes(w, [=](int i) { d[i] = Pack<R>(Op()(Unpack<A>(a[i]), Unpack<B>(b[i]), Unpack<C>(c[i]))); });
}

// Writes a predicate: the executing lanes' bits.
inline void SetPredicate(Warp& w, OperandOffset op, uint32_t value) {
  uint32_t* p = w.Reg<uint32_t>(op);
  *p = (*p & ~w.exec) | (value & w.exec);
}

template <class T>
constexpr char Letter() {
  if constexpr (std::is_same_v<T, float>) return 'f';
  if constexpr (std::is_same_v<T, double>) return 'd';
  if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, Bfloat>) return 'e';
  return sizeof(T) == 8 ? 'l' : 'i';
}

template <class... T>
struct SignatureOf {
  static constexpr char kText[] = {Letter<T>()..., '\0'};
};

// Table entries: operation, result type, source types (once if all are the same).
template <class Op, class R, class A = R>
constexpr OpEntry One(const char* key) {
  return {key, SignatureOf<R, A>::kText, &Unary<Op, R, A>};
}
template <class Op, class R, class A = R, class B = A>
constexpr OpEntry Two(const char* key) {
  return {key, SignatureOf<R, A, B>::kText, &Binary<Op, R, A, B>};
}
template <class Op, class R, class A = R, class B = A, class C = B>
constexpr OpEntry Three(const char* key) {
  return {key, SignatureOf<R, A, B, C>::kText, &Ternary<Op, R, A, B, C>};
}

}  // namespace softgpu::SOFTGPU_ISA
