// Managed memory: device memory at the addresses of the program's own (shared_blocks.h), and the
// managed variables of loaded code, which the worker's driver has placed.
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
// In the context, which is healthy; for all its streams.
CUresult AllocateManagedIn(Context* context, uint64_t bytes, uint64_t* address);
// Waits for the work of all contexts, as it may use the memory.
CUresult FreeManaged(uint64_t address);
// The allocation of that number, if it is still there; no work uses it any more.
void FreeIdleManaged(uint64_t address, uint64_t id);
bool FindManaged(uint64_t address, ManagedRange* range);

// Code's managed variable: its like in the program's memory gets its value. The same one may be
// added again. CUDA_ERROR_OUT_OF_MEMORY, with a sentence, if the program has something else there.
// One of a library outlives the context: the program has it until the code is unloaded.
CUresult AddManagedVariable(Context* context, uint64_t address, uint64_t bytes, bool of_library);
void RemoveManagedVariable(uint64_t address);

// Whether there is such a range, as a whole; 0 bytes stand for its length.
bool IsManagedRange(uint64_t address, uint64_t bytes);

// Calls use(hints) with the hints of the whole managed range in which all these bytes lie, under a
// lock. CUDA_ERROR_INVALID_VALUE if they lie in none.
CUresult WithHints(uint64_t address, uint64_t bytes, FunctionRef<void(MemoryHints&)> use);

// Before a context ends: what its work writes to variables that outlive it comes back.
CUresult KeepManagedVariables(Context* context);
// When a context was made: it gets the values of variables whose context has ended.
CUresult GiveManagedVariables(Context* context);
// When a context ended.
void ForgetManaged(uint32_t context_number);

}  // namespace longwire::shim
