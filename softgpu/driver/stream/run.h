// Operations run, and the checks of their parameters, which the calls that submit them share.
#pragma once

#include <span>

#include "softgpu/driver/graph/operation.h"

namespace softgpu {

// Runs everything but events, child graphs and conditionals (those need the submission's view) on
// this thread.
Status Run(const Operation& operation, Context& context);

// True if the device's work may touch every byte: it has access, or it is registered host memory.
bool Reachable(uint64_t address, uint64_t bytes, int device);
bool InArena(uint64_t address);
// True if the address is neither in the arena nor registered: ordinary host memory.
bool IsPageable(uint64_t address);

// INVALID_VALUE for impossible pitches and for ranges that are not mapped or that the device may
// not access (copies reach plain allocations of every device, as on real ones) or that are not
// inside an array; INVALID_HANDLE for an array that is none.
CUresult CheckCopy(const CUDA_MEMCPY3D& copy, CopyDevices devices);
CUresult CheckFill(const CUDA_MEMSET_NODE_PARAMS& fill, int device);
CUresult CheckBatch(std::span<const CUstreamBatchMemOpParams> operations, int device);

// Host addresses of the first byte of each side.
uint64_t SourceAddress(const CUDA_MEMCPY3D& copy);
uint64_t TargetAddress(const CUDA_MEMCPY3D& copy);

}  // namespace softgpu
