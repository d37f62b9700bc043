// The instructions that copy boxes of tensors: what lowering leaves to their handlers.
#pragma once

#include "softgpu/engine/run/code.h"
#include "softgpu/engine/texture/tensor_map.h"

namespace softgpu {

struct TensorSite {
  uint32_t rank = 1;
  OperandOffset map = 0;     // its address
  OperandOffset shared = 0;  // address in shared memory, 32 bits
  int64_t map_offset = 0, shared_offset = 0;
  OperandOffset coordinates[kMaxDimensions] = {};  // of the box's first element, innermost first
  OperandOffset bytes = 0;                         // written: how many a load has brought
};

// data: a TensorSite. What lies outside of the tensor is zero or NaN when loaded, and not stored.
void LoadTensor(Warp& w, const Instruction& instruction);
void StoreTensor(Warp& w, const Instruction& instruction);

}  // namespace softgpu
