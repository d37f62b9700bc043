// Flags in Instruction::extra of memory instructions, above the element count.
#pragma once

#include <cstdint>

namespace softgpu {

constexpr uint32_t kAccessCount = 0x7;   // elements: 1 to 4
constexpr uint32_t kAccessPolls = 0x10;  // may be part of a spin loop: costs more of the slice
constexpr uint32_t kAccessFence = 0x20;  // release
constexpr int32_t kPollCost = 200;       // instructions

}  // namespace softgpu
