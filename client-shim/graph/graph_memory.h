// Memory that graphs allocate: what launches have left there and nobody has freed. As long as it is
// there a graph that allocates it cannot be launched again.
#pragma once

#include <cuda.h>

#include <cstdint>

#include "client-shim/context/context.h"
#include "longwire/calls.h"

namespace longwire::shim {

// What a launch allocates and frees, beyond what it does both with. CUDA_ERROR_INVALID_VALUE, and
// nothing noted, if something of it is still there; unless the executable frees it at each launch.
CUresult TakeGraphMemory(const calls::GraphMemory& memory, bool frees_at_launch);
// A node allocates there from now on: whatever was there before is gone, with its context.
void AddGraphMemory(uint64_t address, uint64_t bytes, Context* context);
// False if the address is none of such memory.
bool FreeGraphMemory(uint64_t address);

}  // namespace longwire::shim
