// Checks of the operations' parameters, shared by the calls that submit them and by the streams
// that run them later.
#pragma once

#include "softgpu/driver/stream.h"

namespace softgpu {

// True if device work may touch every byte: mapped in the arena, or registered host memory.
bool Reachable(uint64_t address, uint64_t bytes);
bool InArena(uint64_t address);
// True if the address is neither in the arena nor registered: ordinary host memory.
bool IsPageable(uint64_t address);

// INVALID_VALUE for impossible pitches and device ranges that are not mapped; NOT_SUPPORTED for
// arrays.
CUresult CheckCopy(const CUDA_MEMCPY3D& copy);
CUresult CheckFill(const CUDA_MEMSET_NODE_PARAMS& fill);
CUresult CheckBatch(std::span<const CUstreamBatchMemOpParams> operations);

// Host addresses of the first byte of each side.
uint64_t SourceAddress(const CUDA_MEMCPY3D& copy);
uint64_t TargetAddress(const CUDA_MEMCPY3D& copy);

}  // namespace softgpu
