// Addresses of a warp's memory instruction, checked. Included by ops_*.cc only.
#pragma once

#include "softgpu/engine/ops/ops_common.h"
#include "softgpu/engine/run/cluster_memory.h"
#include "softgpu/engine/run/memory_flags.h"

// Kernels may race with one another as they like; that is not the device's own data race.
#if defined(__SANITIZE_THREAD__)
#define SOFTGPU_NO_TSAN __attribute__((no_sanitize("thread"), noinline))
#else
#define SOFTGPU_NO_TSAN
#endif

namespace softgpu {

// Slow path, once for all instruction sets: checks lane by lane and reports the first bad one.
bool CheckLanes(Warp& w, const Instruction& ins, const uint64_t* lane, uint64_t bytes);

namespace SOFTGPU_ISA {

struct Addresses {
  alignas(64) uint64_t lane[kLanes];  // host addresses; only those of executing lanes mean anything
  uint64_t low, high;                 // over the executing lanes
};

inline void CountPoll(Warp& w) {
  w.fuel -= kPollCost;
  w.block->polls = true;
}

// Fills `at` with base[i] + offset, which wraps around as the address register would, and its
// bounds; false if an address is not aligned to `bytes`.
template <class A>
inline __attribute__((always_inline)) bool Gather(const Warp& w, const A* from, uint64_t offset,
                                                  uint64_t alignment, Addresses& at) {
  A low = static_cast<A>(~A{0});
  A high = 0;
  A bits = 0;
  auto lane = [&](int i) {
    A a = static_cast<A>(from[i] + offset);
    at.lane[i] = a;
    low = a < low ? a : low;
    high = a > high ? a : high;
    bits |= a;
  };
  if (w.exec == kAllLanes) {
    for (int i = 0; i < kLanes; ++i) lane(i);
  } else {
    ForEachLane(w.exec, lane);
  }
  at.low = low;
  at.high = high;
  return (bits & (alignment - 1)) == 0;
}

// Largest power of two not above `bytes`: vectors of three elements do not exist.
inline bool GenericAddresses(Warp& w, const Instruction& ins, uint64_t bytes, Addresses& at) {
  bool aligned = Gather(w, w.Reg<uint64_t>(ins.op[4]), static_cast<uint64_t>(ins.imm), bytes, at);
  // The usual case: everything within one mapped granule of the arena.
  uint64_t first = at.low - w.arena->base();
  if (aligned && first < w.arena->bytes() && at.high - at.low < Arena::kGranule &&
      w.arena->Allows(at.low, at.high - at.low + bytes, w.device)) {
    return true;
  }
  if (aligned && w.private_memory->Contains(at.low, at.high - at.low + bytes)) return true;
  return CheckLanes(w, ins, at.lane, bytes);
}

inline bool SharedAddresses(Warp& w, const Instruction& ins, uint64_t bytes, Addresses& at) {
  bool aligned = Gather(w, w.Reg<uint32_t>(ins.op[4]), static_cast<uint64_t>(ins.imm), bytes, at);
  if (aligned && at.high < w.shared_bytes && w.shared_bytes - at.high >= bytes) {
    uint64_t base = w.shared_base;
    // Lanes that do not execute hold what they hold; without a branch it is a vector's addition.
    // NOLINTNEXTLINE(clang-analyzer-core.uninitialized.Assign)
    for (int i = 0; i < kLanes; ++i) at.lane[i] += base;
    at.low += base;
    at.high += base;
    return true;
  }
  return LocateInCluster(w, ins, at.lane, bytes, &at.low, &at.high);
}

// A bulk operation between shared memory and elsewhere, in pieces that all lanes move together:
// calls each(lanes, near, far) for the lanes that have a piece left. op: 1 bytes, 3 and 5 the
// address in shared memory and its offset, 4 the other one.
template <class Each>
void ForEachPiece(Warp& w, const Instruction& ins, uint32_t piece, Each each) {
  const uint32_t lanes = w.exec;
  const auto* bytes = w.Reg<uint32_t>(ins.op[1]);
  Instruction outside = ins;
  Instruction inside = ins;
  inside.op[4] = ins.op[3];
  inside.imm = static_cast<int64_t>(w.Reg<uint64_t>(ins.op[5])[0]);
  for (uint32_t done = 0;; done += piece) {
    uint32_t moving = 0;
    ForEachLane(lanes, [&](int i) { moving |= done < bytes[i] ? 1u << i : 0; });
    if (moving == 0) return;
    Addresses near;
    Addresses far;
    w.exec = moving;
    bool allowed =
        SharedAddresses(w, inside, piece, near) && GenericAddresses(w, outside, piece, far);
    w.exec = lanes;
    if (!allowed) return;
    each(moving, near, far);
    inside.imm += piece;
    outside.imm += piece;
  }
}

}  // namespace SOFTGPU_ISA
}  // namespace softgpu
