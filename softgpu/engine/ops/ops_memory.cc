// Loads, stores and address conversions. Every access is checked against the arena, private memory
// or the block's shared memory before the first byte moves.
#include <algorithm>
#include <cstring>

#include "softgpu/engine/ops/vector_access.h"

namespace softgpu::SOFTGPU_ISA {
namespace {

// True if lane i's address is a[0] + i * size for all 32 lanes.
inline bool Contiguous(const uint64_t* a, uint64_t size) {
  uint64_t different = 0;
  for (int i = 0; i < kLanes; ++i) different |= a[i] ^ (a[0] + static_cast<uint64_t>(i) * size);
  return different == 0;
}

template <class T>
SOFTGPU_NO_TSAN void LoadFrom(Warp& w, const Instruction& ins, const Addresses& at) {
  uint32_t count = ins.extra & kAccessCount;
  if (count == 2) return LoadVector<T, 2>(w, ins, at);
  if constexpr (sizeof(T) < 8) {
    if (count == 4) return LoadVector<T, 4>(w, ins, at);
  }
  if (w.exec == kAllLanes && count == 1) {
    auto* d = w.Reg<LoadStorage<T>>(ins.op[0]);
    if (at.low == at.high) {
      LoadStorage<T> value = Read<T>(at.low);
      for (int i = 0; i < kLanes; ++i) d[i] = value;
    } else if (sizeof(T) >= 4 && Contiguous(at.lane, sizeof(T))) {
      std::memcpy(d, reinterpret_cast<const void*>(at.low), kLanes * sizeof(T));
    } else {
      for (int i = 0; i < kLanes; ++i) d[i] = Read<T>(at.lane[i]);
    }
    return;
  }
  for (uint32_t n = 0; n < count; ++n) {
    auto* d = w.Reg<LoadStorage<T>>(ins.op[n]);
    ForEachLane(w.exec, [&](int i) { d[i] = Read<T>(at.lane[i] + n * sizeof(T)); });
  }
}

template <class T>
SOFTGPU_NO_TSAN void StoreTo(Warp& w, const Instruction& ins, const Addresses& at) {
  uint32_t count = ins.extra & kAccessCount;
  if (count == 2) return StoreVector<T, 2>(w, ins, at);
  if constexpr (sizeof(T) < 8) {
    if (count == 4) return StoreVector<T, 4>(w, ins, at);
  }
  if (w.exec == kAllLanes && count == 1) {
    const auto* s = w.Reg<Storage<T>>(ins.op[0]);
    if (sizeof(T) >= 4 && Contiguous(at.lane, sizeof(T))) {
      std::memcpy(reinterpret_cast<void*>(at.low), s, kLanes * sizeof(T));
    } else {
      for (int i = 0; i < kLanes; ++i) Write<T>(at.lane[i], static_cast<T>(s[i]));
    }
    return;
  }
  for (uint32_t n = 0; n < count; ++n) {
    const auto* s = w.Reg<Storage<T>>(ins.op[n]);
    ForEachLane(w.exec, [&](int i) { Write<T>(at.lane[i] + n * sizeof(T), static_cast<T>(s[i])); });
  }
}

template <class T>
void Load(Warp& w, const Instruction& ins) {
  Addresses at;
  if (!GenericAddresses(w, ins, sizeof(T) * (ins.extra & kAccessCount), at)) return;
  if ((ins.extra & kAccessPolls) != 0) CountPoll(w);
  LoadFrom<T>(w, ins, at);
}

template <class T>
void LoadShared(Warp& w, const Instruction& ins) {
  Addresses at;
  if (!SharedAddresses(w, ins, sizeof(T) * (ins.extra & kAccessCount), at)) return;
  if ((ins.extra & kAccessPolls) != 0) CountPoll(w);
  LoadFrom<T>(w, ins, at);
}

template <class T>
void LoadFrame(Warp& w, const Instruction& ins) {
  for (uint32_t n = 0; n < (ins.extra & kAccessCount); ++n) {
    auto* d = w.Reg<LoadStorage<T>>(ins.op[n]);
    uint64_t offset = static_cast<uint64_t>(ins.imm) + n * sizeof(T);
    ForEachLane(w.exec, [&](int i) { d[i] = Read<T>(w.LocalAddress(i) + offset); });
  }
}

template <class T>
void LoadParameter(Warp& w, const Instruction& ins) {
  uint64_t address = w.block->launch->parameters + static_cast<uint64_t>(ins.imm);
  for (uint32_t n = 0; n < (ins.extra & kAccessCount); ++n) {
    auto* d = w.Reg<LoadStorage<T>>(ins.op[n]);
    LoadStorage<T> value = Read<T>(address + n * sizeof(T));
    Lanes(w, [=](int i) { d[i] = value; });
  }
}

template <class T>
void Store(Warp& w, const Instruction& ins) {
  Addresses at;
  if (!GenericAddresses(w, ins, sizeof(T) * (ins.extra & kAccessCount), at)) return;
  if ((ins.extra & kAccessFence) != 0) std::atomic_thread_fence(std::memory_order_release);
  StoreTo<T>(w, ins, at);
}

template <class T>
void StoreShared(Warp& w, const Instruction& ins) {
  Addresses at;
  if (!SharedAddresses(w, ins, sizeof(T) * (ins.extra & kAccessCount), at)) return;
  StoreTo<T>(w, ins, at);
}

template <class T>
void StoreFrame(Warp& w, const Instruction& ins) {
  for (uint32_t n = 0; n < (ins.extra & kAccessCount); ++n) {
    const auto* s = w.Reg<Storage<T>>(ins.op[n]);
    uint64_t offset = static_cast<uint64_t>(ins.imm) + n * sizeof(T);
    ForEachLane(w.exec, [&](int i) { Write<T>(w.LocalAddress(i) + offset, static_cast<T>(s[i])); });
  }
}

// cp.async: global memory to shared memory, filled up with zeros. op: 1 bytes to read, 3 and 5 the
// address to write and its offset, 4 the address to read; extra: bytes to write.
SOFTGPU_NO_TSAN void CopyAsync(Warp& w, const Instruction& ins) {
  uint32_t lanes = w.exec;
  const auto* read = w.Reg<uint32_t>(ins.op[1]);
  Instruction target = ins;
  target.op[4] = ins.op[3];
  target.imm = static_cast<int64_t>(w.Reg<uint64_t>(ins.op[5])[0]);
  Addresses to;
  Addresses from;
  if (!SharedAddresses(w, target, ins.extra, to)) return;
  uint32_t reading = 0;
  ForEachLane(lanes, [&](int i) { reading |= read[i] != 0 ? 1u << i : 0; });
  w.exec = reading;
  bool allowed = reading == 0 || GenericAddresses(w, ins, ins.extra, from);
  w.exec = lanes;
  if (!allowed) return;
  ForEachLane(lanes, [&](int i) {
    uint32_t bytes = read[i] < ins.extra ? read[i] : ins.extra;
    auto* p = reinterpret_cast<std::byte*>(to.lane[i]);
    if (bytes > 0) std::memcpy(p, reinterpret_cast<const void*>(from.lane[i]), bytes);
    std::memset(p + bytes, 0, ins.extra - bytes);
  });
}

// cp.async.bulk.
template <bool kLoad>
SOFTGPU_NO_TSAN void CopyBulk(Warp& w, const Instruction& ins) {
  constexpr uint32_t kPiece = 16;
  ForEachPiece(w, ins, kPiece, [](uint32_t lanes, const Addresses& near, const Addresses& far) {
    ForEachLane(lanes, [&](int i) {
      auto* shared = reinterpret_cast<void*>(near.lane[i]);
      auto* global = reinterpret_cast<void*>(far.lane[i]);
      std::memcpy(kLoad ? shared : global, kLoad ? global : shared, kPiece);
    });
  });
}

// Between shared and generic addresses. Mostly all are the block's own.
void FromShared(Warp& w, const Instruction& ins) {
  auto* d = w.Reg<uint64_t>(ins.op[0]);
  const auto* a = w.Reg<uint64_t>(ins.op[1]);
  const uint64_t base = w.shared_base;
  uint64_t bits = 0;
  Lanes(w, [&](int i) {
    bits |= a[i];
    d[i] = a[i] + base;
  });
  if (bits <= kOffsetMask) return;
  ForEachLane(w.exec, [&](int i) { d[i] = SharedToGeneric(w, d[i] - base); });
}

void ToShared(Warp& w, const Instruction& ins) {
  auto* d = w.Reg<uint64_t>(ins.op[0]);
  const auto* a = w.Reg<uint64_t>(ins.op[1]);
  if (w.cluster_blocks > 1) {
    ForEachLane(w.exec, [&](int i) { d[i] = GenericToShared(w, a[i]); });
    return;
  }
  Lanes(w, [d, a, base = w.shared_base](int i) { d[i] = a[i] - base; });
}

enum class Place { kNone, kShared, kCluster, kLocal, kGlobal };

// Local and shared memory lie in private memory; what is there and no shared memory of the cluster
// is local (or a parameter).
template <Place kPlace>
void IsInSpace(Warp& w, const Instruction& ins) {
  const auto* a = w.Reg<uint64_t>(ins.op[1]);
  uint32_t result = 0;
  ForEachLane(w.exec, [&](int i) {
    const Block* owner = OwnerOf(w, a[i]);
    Place place = owner == w.block                         ? Place::kShared
                  : owner != nullptr                       ? Place::kCluster
                  : PrivateMemory::Get().Contains(a[i], 1) ? Place::kLocal
                                                           : Place::kGlobal;
    if (kPlace == Place::kCluster && place == Place::kShared) place = kPlace;
    if (place == kPlace) result |= 1u << i;
  });
  SetPredicate(w, ins.op[0], result);
}

constexpr OpEntry kOps[] = {
    {"cp.async", nullptr, CopyAsync},
    {"cp.bulk.load", nullptr, CopyBulk<true>},
    {"cp.bulk.store", nullptr, CopyBulk<false>},
    {"cvta.shared", nullptr, FromShared},
    {"cvta.to.shared", nullptr, ToShared},
    {"isspacep.cluster", nullptr, IsInSpace<Place::kCluster>},
    {"isspacep.global", nullptr, IsInSpace<Place::kGlobal>},
    {"isspacep.local", nullptr, IsInSpace<Place::kLocal>},
    {"isspacep.none", nullptr, IsInSpace<Place::kNone>},
    {"isspacep.shared", nullptr, IsInSpace<Place::kShared>},
    {"ld.frame.s16", nullptr, LoadFrame<int16_t>},
    {"ld.frame.s32", nullptr, LoadFrame<uint32_t>},
    {"ld.frame.s8", nullptr, LoadFrame<int8_t>},
    {"ld.frame.u16", nullptr, LoadFrame<uint16_t>},
    {"ld.frame.u32", nullptr, LoadFrame<uint32_t>},
    {"ld.frame.u64", nullptr, LoadFrame<uint64_t>},
    {"ld.frame.u8", nullptr, LoadFrame<uint8_t>},
    {"ld.param.s16", nullptr, LoadParameter<int16_t>},
    {"ld.param.s32", nullptr, LoadParameter<uint32_t>},
    {"ld.param.s8", nullptr, LoadParameter<int8_t>},
    {"ld.param.u16", nullptr, LoadParameter<uint16_t>},
    {"ld.param.u32", nullptr, LoadParameter<uint32_t>},
    {"ld.param.u64", nullptr, LoadParameter<uint64_t>},
    {"ld.param.u8", nullptr, LoadParameter<uint8_t>},
    {"ld.s16", nullptr, Load<int16_t>},
    {"ld.s32", nullptr, Load<uint32_t>},
    {"ld.s8", nullptr, Load<int8_t>},
    {"ld.shared.s16", nullptr, LoadShared<int16_t>},
    {"ld.shared.s32", nullptr, LoadShared<uint32_t>},
    {"ld.shared.s8", nullptr, LoadShared<int8_t>},
    {"ld.shared.u16", nullptr, LoadShared<uint16_t>},
    {"ld.shared.u32", nullptr, LoadShared<uint32_t>},
    {"ld.shared.u64", nullptr, LoadShared<uint64_t>},
    {"ld.shared.u8", nullptr, LoadShared<uint8_t>},
    {"ld.u16", nullptr, Load<uint16_t>},
    {"ld.u32", nullptr, Load<uint32_t>},
    {"ld.u64", nullptr, Load<uint64_t>},
    {"ld.u8", nullptr, Load<uint8_t>},
    {"st.frame.u16", nullptr, StoreFrame<uint16_t>},
    {"st.frame.u32", nullptr, StoreFrame<uint32_t>},
    {"st.frame.u64", nullptr, StoreFrame<uint64_t>},
    {"st.frame.u8", nullptr, StoreFrame<uint8_t>},
    {"st.shared.u16", nullptr, StoreShared<uint16_t>},
    {"st.shared.u32", nullptr, StoreShared<uint32_t>},
    {"st.shared.u64", nullptr, StoreShared<uint64_t>},
    {"st.shared.u8", nullptr, StoreShared<uint8_t>},
    {"st.u16", nullptr, Store<uint16_t>},
    {"st.u32", nullptr, Store<uint32_t>},
    {"st.u64", nullptr, Store<uint64_t>},
    {"st.u8", nullptr, Store<uint8_t>},
};

}  // namespace

std::span<const OpEntry> MemoryOps() { return kOps; }

}  // namespace softgpu::SOFTGPU_ISA
