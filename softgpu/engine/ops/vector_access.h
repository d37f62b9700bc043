// What one lane loads or stores with one instruction, a vector of elements, too: one access of up
// to 16 bytes, as on a GPU, so that others see all of it or nothing. Processors with AVX make
// aligned accesses of 16 bytes so. Included by ops_memory.cc only.
#pragma once

#include <immintrin.h>

#include "softgpu/engine/ops/memory_access.h"

namespace softgpu::SOFTGPU_ISA {

template <class T>
using LoadStorage = std::conditional_t<sizeof(T) == 8, uint64_t,
                                       std::conditional_t<std::is_signed_v<T>, int32_t, uint32_t>>;

template <class T>
SOFTGPU_NO_TSAN T Read(uint64_t address) {
  return *reinterpret_cast<const volatile T*>(address);
}

template <class T>
SOFTGPU_NO_TSAN void Write(uint64_t address, T value) {
  *reinterpret_cast<volatile T*>(address) = value;
}

using Sixteen = long long __attribute__((vector_size(16)));
using TwoWords = uint64_t __attribute__((vector_size(16)));
using FourWords = uint32_t __attribute__((vector_size(16)));
template <class T>
using Elements = std::conditional_t<sizeof(T) == 8, TwoWords, FourWords>;
template <size_t kBytes>
using Whole =
    std::conditional_t<kBytes == 8, uint64_t, std::conditional_t<kBytes == 4, uint32_t, uint16_t>>;

// Between the vectors of as many lanes as they have elements, and the elements of those lanes.
inline void Transpose(Sixteen (&v)[2]) {
  Sixteen low = _mm_unpacklo_epi64(v[0], v[1]);
  v[1] = _mm_unpackhi_epi64(v[0], v[1]);
  v[0] = low;
}

inline void Transpose(Sixteen (&v)[4]) {
  Sixteen low[2] = {_mm_unpacklo_epi32(v[0], v[1]), _mm_unpacklo_epi32(v[2], v[3])};
  Sixteen high[2] = {_mm_unpackhi_epi32(v[0], v[1]), _mm_unpackhi_epi32(v[2], v[3])};
  Transpose(low);
  Transpose(high);
  v[0] = low[0];
  v[1] = low[1];
  v[2] = high[0];
  v[3] = high[1];
}

// Up to 8 bytes: all lanes' vectors are read first and then taken apart, or put together first.
template <class T, int kCount>
SOFTGPU_NO_TSAN void LoadSmall(Warp& w, const Instruction& ins, const Addresses& at) {
  using Vector = Whole<kCount * sizeof(T)>;
  Vector v[kLanes];
  Lanes(w, [&](int i) { v[i] = Read<Vector>(at.lane[i]); });
#pragma GCC unroll 4
  for (int n = 0; n < kCount; ++n) {
    auto* d = w.Reg<LoadStorage<T>>(ins.op[n]);
    Lanes(w, [&](int i) { d[i] = static_cast<T>(v[i] >> (n * 8 * sizeof(T))); });
  }
}

template <class T, int kCount>
SOFTGPU_NO_TSAN void StoreSmall(Warp& w, const Instruction& ins, const Addresses& at) {
  using Vector = Whole<kCount * sizeof(T)>;
  Vector v[kLanes] = {};
#pragma GCC unroll 4
  for (int n = 0; n < kCount; ++n) {
    const auto* s = w.Reg<Storage<T>>(ins.op[n]);
    Lanes(w, [&](int i) {
      auto part = static_cast<Vector>(static_cast<T>(s[i]));
      v[i] = static_cast<Vector>(v[i] | part << (n * 8 * sizeof(T)));
    });
  }
  ForEachLane(w.exec, [&](int i) { Write<Vector>(at.lane[i], v[i]); });
}

// 16 bytes.
template <class T, int kCount>
SOFTGPU_NO_TSAN void LoadLarge(Warp& w, const Instruction& ins, const Addresses& at) {
  Storage<T>* d[kCount];
  for (int n = 0; n < kCount; ++n) d[n] = w.Reg<Storage<T>>(ins.op[n]);
  if (w.exec == kAllLanes) {
    for (int i = 0; i < kLanes; i += kCount) {
      Sixteen v[kCount];
#pragma GCC unroll 4
      for (int n = 0; n < kCount; ++n) v[n] = Read<Sixteen>(at.lane[i + n]);
      Transpose(v);
#pragma GCC unroll 4
      for (int n = 0; n < kCount; ++n) *reinterpret_cast<Sixteen*>(d[n] + i) = v[n];
    }
    return;
  }
  ForEachLane(w.exec, [&](int i) {
    auto v = reinterpret_cast<Elements<T>>(Read<Sixteen>(at.lane[i]));
#pragma GCC unroll 4
    for (int n = 0; n < kCount; ++n) d[n][i] = v[n];
  });
}

template <class T, int kCount>
SOFTGPU_NO_TSAN void StoreLarge(Warp& w, const Instruction& ins, const Addresses& at) {
  const Storage<T>* s[kCount];
  for (int n = 0; n < kCount; ++n) s[n] = w.Reg<Storage<T>>(ins.op[n]);
  if (w.exec == kAllLanes) {
    for (int i = 0; i < kLanes; i += kCount) {
      Sixteen v[kCount];
#pragma GCC unroll 4
      for (int n = 0; n < kCount; ++n) v[n] = *reinterpret_cast<const Sixteen*>(s[n] + i);
      Transpose(v);
#pragma GCC unroll 4
      for (int n = 0; n < kCount; ++n) Write<Sixteen>(at.lane[i + n], v[n]);
    }
    return;
  }
  ForEachLane(w.exec, [&](int i) {
    Elements<T> v = {};
#pragma GCC unroll 4
    for (int n = 0; n < kCount; ++n) v[n] = s[n][i];
    Write<Sixteen>(at.lane[i], reinterpret_cast<Sixteen>(v));
  });
}

template <class T, int kCount>
void LoadVector(Warp& w, const Instruction& ins, const Addresses& at) {
  if constexpr (kCount * sizeof(T) == 16) {
    LoadLarge<T, kCount>(w, ins, at);
  } else {
    LoadSmall<T, kCount>(w, ins, at);
  }
}

template <class T, int kCount>
void StoreVector(Warp& w, const Instruction& ins, const Addresses& at) {
  if constexpr (kCount * sizeof(T) == 16) {
    StoreLarge<T, kCount>(w, ins, at);
  } else {
    StoreSmall<T, kCount>(w, ins, at);
  }
}

}  // namespace softgpu::SOFTGPU_ISA
