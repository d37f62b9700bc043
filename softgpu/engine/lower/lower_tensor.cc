// Copies of boxes of tensors, in one to five dimensions.
#include <memory>

#include "softgpu/engine/lower/lower.h"
#include "softgpu/engine/run/cluster_memory.h"
#include "softgpu/engine/texture/tensor_copy.h"

namespace softgpu {

// cp.async.bulk.tensor.2d [shared], [map, {x, y}], [barrier]; and [map, {x, y}], [shared]. Done at
// once, as all copies.
void Lowering::LowerTensorCopy(const PtxInstruction& instruction) {
  if (instruction.Has(".prefetch")) return;
  for (std::string_view unknown :
       {".im2col", ".im2col_no_offs", ".tile::gather4", ".tile::scatter4", ".reduce"}) {
    if (instruction.Has(unknown)) Reject();
  }
  const bool loads = instruction.Has(".mbarrier::complete_tx::bytes");
  const bool spreads = loads && instruction.Has(".multicast::cluster");
  NeedOperands(instruction, spreads ? 4 : loads ? 3 : 2);
  const PtxOperand& tensor = instruction.operands[loads ? 1 : 0];
  static constexpr std::string_view kRanks[] = {".1d", ".2d", ".3d", ".4d", ".5d"};
  auto& site = *out_.tensor_sites.emplace_back(std::make_shared<TensorSite>());
  while (site.rank < kMaxDimensions && !instruction.Has(kRanks[site.rank - 1])) ++site.rank;
  if (tensor.elements.size() != 1) Reject("a tensor's address");
  const PtxOperand& vector = tensor.elements[0];
  const std::vector<PtxOperand> list =
      vector.kind == PtxOperand::Kind::kVector ? vector.elements : std::vector<PtxOperand>{vector};
  if (list.size() != site.rank) Reject("coordinates");
  for (uint32_t i = 0; i < site.rank; ++i) site.coordinates[i] = Source(list[i], 'i');
  site.map = SourceHandle(tensor);
  site.map_offset = static_cast<int64_t>(tensor.has_register ? tensor.value : 0);
  PtxInstruction inside = instruction;
  inside.modifiers = {".shared"};
  AccessTarget target = FindTarget(inside, instruction.operands[loads ? 0 : 1], 128);
  if (target.place != ".shared") Reject();
  site.shared = target.address;
  site.shared_offset = target.offset;
  site.bytes = Temporary('i');
  const OperandOffset ranks = spreads ? Source(instruction.operands[3], 'i') : 0;
  const size_t number = out_.code.size();
  Emit(loads ? LoadTensor : StoreTensor).data = &site;
  if (loads) EmitBarrier(inside, "complete_tx", instruction.operands[2], site.bytes);
  if (spreads) site.shared = EmitMulticast(number, site.shared, ranks).target_there;
}

}  // namespace softgpu
