#include "softgpu/engine/run/control.h"

#include <immintrin.h>

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>

#include "softgpu/engine/ptx/special.h"
#include "softgpu/engine/run/machine.h"
#include "softgpu/engine/run/memory_flags.h"

namespace softgpu {
namespace {

uint64_t Nanoseconds() {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                   std::chrono::system_clock::now().time_since_epoch())
                                   .count());
}

uint64_t Clock() { return __builtin_ia32_rdtsc(); }

// One of the lanes' thread coordinates: divided once, then counted on.
std::array<uint32_t, kLanes> ThreadIndices(const Warp& w, Special id) {
  const uint32_t* n = w.block->launch->config.block;
  uint32_t first = w.index * kLanes;
  std::array<uint32_t, kLanes> indices;
  if (n[1] == 1 && n[2] == 1) {
    bool x = id == Special::kTidX;
    for (uint32_t lane = 0; lane < kLanes; ++lane) indices[lane] = x ? first + lane : 0;
    return indices;
  }
  uint32_t at[3] = {first % n[0], first / n[0] % n[1], first / n[0] / n[1]};
  const uint32_t& wanted = at[static_cast<int>(id) - static_cast<int>(Special::kTidX)];
  for (uint32_t& index : indices) {
    index = wanted;
    if (++at[0] < n[0]) continue;
    at[0] = 0;
    if (++at[1] < n[1]) continue;
    at[1] = 0;
    ++at[2];
  }
  return indices;
}

uint64_t LaneSpecial(const Warp& w, Special id, int lane) {
  uint32_t bit = 1u << lane;
  switch (id) {
    case Special::kLaneid:
      return static_cast<uint64_t>(lane);
    case Special::kLanemaskEq:
      return bit;
    case Special::kLanemaskLt:
      return bit - 1;
    case Special::kLanemaskLe:
      return bit | (bit - 1);
    case Special::kLanemaskGt:
      return ~(bit | (bit - 1));
    case Special::kLanemaskGe:
      return ~(bit - 1);
    case Special::kFrameAddress:
      return w.LocalAddress(lane);
    default:
      return 0;
  }
}

uint64_t ClusterSpecial(const Block& block, Special id) {
  const LaunchState& launch = *block.launch;
  if (id == Special::kClusterCtaRank) return block.rank;
  if (id == Special::kClusterNctaRank) return launch.cluster_blocks;
  if (id == Special::kIsExplicitCluster) return launch.config.cluster[0] != 0 ? 1 : 0;
  const int place = static_cast<int>(id) - static_cast<int>(Special::kClusterX);
  const int side = place % 3;
  switch (place / 3) {
    case 0:
      return block.cluster->index[side];
    case 1:
      return launch.clusters[side];
    case 2:
      return block.place[side];
    default:
      return launch.cluster[side];
  }
}

uint64_t WarpSpecial(const Warp& w, Special id) {
  if (id >= Special::kClusterX && id <= Special::kIsExplicitCluster) {
    return ClusterSpecial(*w.block, id);
  }
  const LaunchState& launch = *w.block->launch;
  auto pick = [&](Special first, const uint32_t* values) {
    return values[static_cast<int>(id) - static_cast<int>(first)];
  };
  switch (id) {
    case Special::kNtidX:
    case Special::kNtidY:
    case Special::kNtidZ:
      return pick(Special::kNtidX, launch.config.block);
    case Special::kCtaidX:
    case Special::kCtaidY:
    case Special::kCtaidZ:
      return pick(Special::kCtaidX, w.block->index);
    case Special::kNctaidX:
    case Special::kNctaidY:
    case Special::kNctaidZ:
      return pick(Special::kNctaidX, launch.config.grid);
    case Special::kWarpid:
      return w.index;
    case Special::kNwarpid:
      return DeviceShape::kMaxThreadsPerMultiprocessor / kLanes;
    case Special::kWarpSize:
      return kLanes;
    case Special::kSmid:
      return w.block->number % DeviceShape::kMultiprocessors;
    case Special::kNsmid:
      return DeviceShape::kMultiprocessors;
    case Special::kGridid:
      return launch.launch_number;
    case Special::kClock:
      return Clock() & 0xffffffff;
    case Special::kClockHi:
      return Clock() >> 32;
    case Special::kClock64:
      return Clock();
    case Special::kGlobaltimer:
      return Nanoseconds();
    case Special::kGlobaltimerLo:
      return Nanoseconds() & 0xffffffff;
    case Special::kGlobaltimerHi:
      return Nanoseconds() >> 32;
    case Special::kEnvreg1:
      return launch.workspace >> 32;
    case Special::kEnvreg2:
      return launch.workspace & 0xffffffff;
    case Special::kTotalSharedBytes:
      return launch.kernel->static_shared_bytes + launch.config.dynamic_shared_bytes;
    case Special::kReservedSharedBegin:
      return launch.shared_bytes - DeviceShape::kReservedSharedBytes;
    case Special::kReservedSharedMiddle:
      return launch.shared_bytes - DeviceShape::kReservedSharedBytes / 2;
    case Special::kReservedSharedEnd:
      return launch.shared_bytes;
    case Special::kDynamicSharedBytes:
      return launch.config.dynamic_shared_bytes;
    case Special::kDynamicSharedOffset:
      return launch.kernel->static_shared_bytes;
    case Special::kParameterAddress:
      return launch.parameters;
    default:
      return 0;
  }
}

bool PerLane(Special id) {
  return id == Special::kLaneid || id == Special::kFrameAddress ||
         (id >= Special::kLanemaskEq && id <= Special::kLanemaskGt);
}

// Writes value(lane) to the executing lanes.
template <class T, class F>
void WriteLanes(const Warp& w, T* to, F value) {
  if (w.exec == kAllLanes) {
    for (int lane = 0; lane < kLanes; ++lane) to[lane] = static_cast<T>(value(lane));
    return;
  }
  for (uint32_t m = w.exec; m != 0; m &= m - 1) {
    int lane = std::countr_zero(m);
    to[lane] = static_cast<T>(value(lane));
  }
}

template <class T>
void ReadSpecial(Warp& w, const Instruction& i) {
  auto id = static_cast<Special>(i.extra);
  T* to = w.Reg<T>(i.op[0]);
  auto offset = static_cast<uint64_t>(i.imm);
  if (id <= Special::kTidZ) {
    const std::array<uint32_t, kLanes> indices = ThreadIndices(w, id);
    WriteLanes(w, to, [&](int lane) { return indices[static_cast<size_t>(lane)] + offset; });
  } else if (PerLane(id)) {
    WriteLanes(w, to, [&](int lane) { return LaneSpecial(w, id, lane) + offset; });
  } else {
    WriteLanes(w, to, [value = WarpSpecial(w, id) + offset](int) { return value; });
  }
}

// Sends `mask`, all of the active lanes or some, to `target`; the rest stays at the next one.
void SplitTo(Warp& w, uint32_t mask, uint32_t target) {
  uint32_t rest = w.active & ~mask;
  if (rest == 0) {
    w.pc = target;
    return;
  }
  Strand strand;
  strand.frame = w.frame;
  bool rest_first = w.pc < target;
  strand.pc = rest_first ? target : w.pc;
  ParkLanes(w, rest_first ? mask : rest, strand);
  w.active = rest_first ? rest : mask;
  w.pc = rest_first ? w.pc : target;
  if (w.limit != 0) w.limit = std::min(w.limit, strand.pc);
}

}  // namespace

void ReadSpecial32(Warp& w, const Instruction& i) { ReadSpecial<uint32_t>(w, i); }
void ReadSpecial64(Warp& w, const Instruction& i) { ReadSpecial<uint64_t>(w, i); }

void ReadSpecialPredicate(Warp& w, const Instruction& i) {
  uint32_t& to = *w.Reg<uint32_t>(i.op[0]);
  to = WarpSpecial(w, static_cast<Special>(i.extra)) != 0 ? to | w.exec : to & ~w.exec;
}

void Branch(Warp& w, const Instruction& i) { SplitTo(w, w.exec, i.extra); }

void BranchIndexed(Warp& w, const Instruction& i) {
  const auto& table = *static_cast<const std::vector<uint32_t>*>(i.data);
  const uint32_t* index = w.Reg<uint32_t>(i.op[0]);
  uint32_t waiting = w.exec;
  uint32_t next = w.pc;
  if (uint32_t rest = w.active & ~w.exec) {
    Strand strand;
    strand.frame = w.frame;
    strand.pc = next;
    ParkLanes(w, rest, strand);
  }
  while (waiting != 0) {
    uint32_t value = index[std::countr_zero(waiting)];
    if (value >= table.size()) return Fault(w, i, kIllegalInstruction, "branch index out of range");
    Strand strand;
    strand.frame = w.frame;
    strand.pc = table[value];
    uint32_t mask = 0;
    for (uint32_t m = waiting; m != 0; m &= m - 1) {
      int lane = std::countr_zero(m);
      if (index[lane] == value) mask |= 1u << lane;
    }
    ParkLanes(w, mask, strand);
    waiting &= ~mask;
  }
  w.active = 0;
  EndSlice(w);
}

void Call(Warp& w, const Instruction& i) {
  const auto& site = *static_cast<const CallSite*>(i.data);
  CallFunction(w, i, *site.callee, site, w.exec);
}

// Lanes that call the same function go together; the others come back to this instruction.
void CallIndirect(Warp& w, const Instruction& i) {
  const auto& site = *static_cast<const CallSite*>(i.data);
  const uint64_t* pointer = w.Reg<uint64_t>(site.pointer);
  uint64_t handle = pointer[std::countr_zero(w.exec)];
  uint32_t mask = 0;
  for (uint32_t m = w.exec; m != 0; m &= m - 1) {
    int lane = std::countr_zero(m);
    if (pointer[lane] == handle) mask |= 1u << lane;
  }
  const CodeFunction* callee = w.block->launch->kernel->module->FindFunction(handle);
  if (callee == nullptr) return Fault(w, i, kIllegalInstruction, "call of no function");
  if (!callee->unsupported.empty()) return Fault(w, i, kIllegalInstruction, callee->unsupported);
  if (callee->parameters.size() != site.arguments.size()) {
    return Fault(w, i, kIllegalInstruction, "call of a function with other parameters");
  }
  if (uint32_t rest = w.exec & ~mask) {
    Strand strand;
    strand.frame = w.frame;
    strand.pc = CurrentStart(w);
    ParkLanes(w, rest, strand);
    w.active &= ~rest;
  }
  CallFunction(w, i, *callee, site, mask);
}

void Return(Warp& w, const Instruction&) { ReturnLanes(w, w.exec); }
void Exit(Warp& w, const Instruction&) { ExitLanes(w, w.exec); }
void Trap(Warp& w, const Instruction& i) { Fault(w, i, kLaunchFailed, "trap"); }
void Nothing(Warp&, const Instruction&) {}
void MemoryFence(Warp&, const Instruction&) { std::atomic_thread_fence(std::memory_order_seq_cst); }

void NanoSleep(Warp& w, const Instruction&) {
  w.block->polls = true;
  w.fuel -= 5 * kPollCost;
}

void BlockBarrier(Warp& w, const Instruction& i) {
  Block& block = *w.block;
  int lane = std::countr_zero(w.exec);
  uint32_t id = w.Reg<uint32_t>(i.op[0])[lane];
  if (id >= 16) return Fault(w, i, kIllegalInstruction, "barrier number out of range");
  Barrier& barrier = block.barriers[id];
  if ((i.extra & kBarrierCounted) != 0) {
    barrier.expected = w.Reg<uint32_t>(i.op[1])[lane];
    if (barrier.expected == 0 || barrier.expected % kLanes != 0) {
      return Fault(w, i, kIllegalInstruction, "barrier count is no multiple of 32");
    }
  }
  // A warp that comes as a whole counts 32, whatever lanes it has lost.
  bool whole = (i.extra & kBarrierCounted) != 0 && w.exec == w.alive;
  barrier.arrived += whole ? kLanes : static_cast<uint32_t>(std::popcount(w.exec));
  uint32_t reduction = i.extra >> kBarrierReductionShift;
  if (reduction != 0) {
    uint32_t votes = *w.Reg<uint32_t>(i.op[2]) & w.exec;
    barrier.votes += static_cast<uint32_t>(std::popcount(votes));
  }
  if ((i.extra & kBarrierArrive) == 0) {
    Strand strand;
    strand.frame = w.frame;
    strand.pc = w.pc;
    strand.state = Strand::State::kBarrier;
    strand.barrier = static_cast<uint8_t>(id);
    strand.reduction = static_cast<uint8_t>(reduction);
    strand.result = i.op[3];
    ParkLanes(w, w.exec, strand);
    w.active &= ~w.exec;
    EndSlice(w);
  }
  ReleaseBarriers(block);
}

void WarpBarrier(Warp& w, const Instruction& i) {
  std::atomic_thread_fence(std::memory_order_acq_rel);
  ForEachGroup(w, i.op[0], [](uint32_t) {});
}

void WithRounding(Warp& w, const Instruction& i) {
  static_assert(_MM_ROUND_DOWN == 0x2000 && _MM_ROUND_TOWARD_ZERO == 0x6000);
  uint32_t before = _mm_getcsr();
  uint32_t rounding = (before & ~uint32_t{_MM_ROUND_MASK}) | i.extra << 13;
  asm volatile("ldmxcsr %0" ::"m"(rounding) : "memory");
  reinterpret_cast<Handler>(const_cast<void*>(i.data))(w, i);
  asm volatile("ldmxcsr %0" ::"m"(before) : "memory");
}

}  // namespace softgpu
