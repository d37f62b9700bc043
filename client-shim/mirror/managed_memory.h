// Managed memory: allocations, which have the same addresses on the device (shared_blocks.h), and
// managed variables of loaded code, whose addresses the worker's driver chose.
#pragma once

#include <cuda.h>

#include <cstdint>

#include "client-shim/context/context.h"
#include "client-shim/mirror/memory_hints.h"
#include "client-shim/support/function_ref.h"

namespace longwire::shim {

struct ManagedRange {
  uint64_t address = 0;
  uint64_t bytes = 0;  // as asked for
  uint64_t id = 0;     // as CU_POINTER_ATTRIBUTE_BUFFER_ID
  Context* context = nullptr;
  bool variable = false;
};

CUresult AllocateManaged(uint64_t bytes, unsigned flags, uint64_t* address);
// In the context, which must be healthy.
CUresult AllocateManagedIn(Context* context, uint64_t bytes, uint64_t* address);
// Waits for the work of all contexts, as it may use the memory.
CUresult FreeManaged(uint64_t address);
// Frees the allocation with that id, if it still exists. No work may use it any more.
void FreeIdleManaged(uint64_t address, uint64_t id);
bool FindManaged(uint64_t address, ManagedRange* range);

// Maps a managed variable of loaded code into the program, at the same address, and copies its
// value. It may be added several times. CUDA_ERROR_OUT_OF_MEMORY, with a message, if the program
// has other memory there. A library's variable outlives the context: it stays until the code is
// unloaded.
CUresult AddManagedVariable(Context* context, uint64_t address, uint64_t bytes, bool of_library);
void RemoveManagedVariable(uint64_t address);

// Whether a managed range starts at the address and has this length; 0 bytes: any length.
bool IsManagedRange(uint64_t address, uint64_t bytes);

// Calls use(hints) under a lock, with the hints of the managed range that contains all these bytes.
// CUDA_ERROR_INVALID_VALUE if there is none.
CUresult WithHints(uint64_t address, uint64_t bytes, FunctionRef<void(MemoryHints&)> use);

// Before a context ends: fetches what its work wrote to variables that outlive it.
CUresult KeepManagedVariables(Context* context);
// When a context was created: it takes over the variables whose context has ended.
CUresult GiveManagedVariables(Context* context);
// When a context ended.
void ForgetManaged(uint32_t context_number);

}  // namespace longwire::shim
