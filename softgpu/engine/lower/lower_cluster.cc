// What reaches other blocks of a cluster: their addresses, their barriers, and stores and copies
// that tell them of their end. All of it is done at once.
#include "softgpu/engine/lower/lower.h"
#include "softgpu/engine/run/cluster_memory.h"

namespace softgpu {

// mapa{.shared::cluster} d, a, rank
void Lowering::LowerMap(const PtxInstruction& instruction) {
  NeedOperands(instruction, 3);
  const bool shared = IsShared(instruction);
  OperandOffset address = Source(instruction.operands[1], shared ? 'i' : 'l');
  OperandOffset rank = Source(instruction.operands[2], 'i');
  OperandOffset to = Destination(instruction.operands[0], shared ? 'i' : 'l');
  Instruction& map = Emit(shared ? MapShared : MapGeneric);
  map.op[0] = to;
  map.op[1] = address;
  map.op[2] = rank;
}

// getctarank{.shared::cluster} d, a
void Lowering::LowerRank(const PtxInstruction& instruction) {
  NeedOperands(instruction, 2);
  const bool shared = IsShared(instruction);
  OperandOffset address = Source(instruction.operands[1], shared ? 'i' : 'l');
  OperandOffset to = Destination(instruction.operands[0], 'i');
  Instruction& rank = Emit(shared ? RankOfShared : RankOfGeneric);
  rank.op[0] = to;
  rank.op[1] = address;
}

void Lowering::LowerClusterBarrier(const PtxInstruction& instruction) {
  const bool arrives = instruction.Has(".arrive");
  if (!arrives && !instruction.Has(".wait")) Reject();
  Emit(arrives ? ClusterArrive : ClusterWait);
}

// st.async and red.async tell the barrier how many bytes have come.
void Lowering::LowerCompletion(const PtxInstruction& instruction, size_t barrier, uint64_t bytes) {
  NeedOperands(instruction, barrier + 1);
  EmitBarrier(instruction, "complete_tx", instruction.operands[barrier], Constant(bytes, 'i'));
}

// The copy of this number and the arrival behind it, which is the last instruction, become one for
// all blocks whose bits are set. The caller makes the copy go where the site says.
MulticastSite& Lowering::EmitMulticast(size_t copy, OperandOffset target, OperandOffset ranks) {
  auto& site = *out_.multicast_sites.emplace_back(std::make_shared<MulticastSite>());
  site.ranks = ranks;
  site.target = target;
  site.target_there = Temporary('i');
  site.barrier_there = Temporary('i');
  site.arrive = out_.code.back();
  site.barrier = site.arrive.op[4];
  site.arrive.op[4] = site.barrier_there;
  site.copy = out_.code[copy];
  out_.code.pop_back();
  out_.code.erase(out_.code.begin() + static_cast<ptrdiff_t>(copy));
  Emit(Multicast).data = &site;
  return site;
}

}  // namespace softgpu
