// Memory that launches of graphs have allocated and that is not freed yet. Until it is, a graph
// that allocates it cannot be launched again.
#pragma once

#include <cuda.h>

#include <cstdint>

#include "client-shim/context/context.h"
#include "longwire/calls.h"

namespace longwire::shim {

// Notes the memory that a launch allocates but does not free, and frees but does not allocate.
// CUDA_ERROR_INVALID_VALUE, and nothing is noted, if some of it is still allocated, unless the
// executable frees it at each launch.
CUresult TakeGraphMemory(const calls::GraphMemory& memory, bool frees_at_launch);
// A node allocates at this address from now on. Earlier memory there was freed with its context.
void AddGraphMemory(uint64_t address, uint64_t bytes, Context* context);
// False if the address is not in such memory.
bool FreeGraphMemory(uint64_t address);

}  // namespace longwire::shim
