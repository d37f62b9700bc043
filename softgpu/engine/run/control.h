// Handlers that act on a warp as a whole: control flow, barriers, special registers. They exist
// once, whatever the host's CPU.
#pragma once

#include <cstdint>
#include <string_view>

#include "softgpu/engine/run/code.h"

namespace softgpu {

void Branch(Warp& w, const Instruction& i);         // extra: target
void BranchIndexed(Warp& w, const Instruction& i);  // op[0]: index; data: table
void Call(Warp& w, const Instruction& i);           // data: CallSite with a callee
void CallIndirect(Warp& w, const Instruction& i);   // data: CallSite with a pointer
void Return(Warp& w, const Instruction& i);
void Exit(Warp& w, const Instruction& i);
void Trap(Warp& w, const Instruction& i);
void Nothing(Warp& w, const Instruction& i);
void MemoryFence(Warp& w, const Instruction& i);
void NanoSleep(Warp& w, const Instruction& i);
// op: barrier number, count, predicate, result; extra: flags below.
void BlockBarrier(Warp& w, const Instruction& i);
constexpr uint32_t kBarrierCounted = 1;
constexpr uint32_t kBarrierArrive = 2;
constexpr uint32_t kBarrierReductionShift = 2;  // 0 none, 1 popc, 2 and, 3 or
void ClusterArrive(Warp& w, const Instruction& i);
void ClusterWait(Warp& w, const Instruction& i);
void WarpBarrier(Warp& w, const Instruction& i);  // op[0]: lane mask
// Around another handler (data): rounds as extra says (0 nearest, 1 down, 2 up, 3 to zero).
void WithRounding(Warp& w, const Instruction& i);

void ReadSpecial32(Warp& w, const Instruction& i);  // op[0]; extra: Special; imm is added
void ReadSpecial64(Warp& w, const Instruction& i);
void ReadSpecialPredicate(Warp& w, const Instruction& i);

}  // namespace softgpu
