// Green contexts: parts of a device's primary context (their home) with some of its multiprocessors
// and streams of their own. Memory, modules, events and errors belong to the home.
#pragma once

#include <cuda.h>

#include "client-shim/context/context.h"

namespace longwire::shim {

// Keeps its home active. Errors as cuGreenCtxCreate.
CUresult NewGreenContext(Context* home, CUdevResourceDesc descriptor, unsigned flags,
                         Context** created);

// Waits for its work and ends it; calls with its streams then return
// CUDA_ERROR_CONTEXT_IS_DESTROYED. The home stays as it is.
CUresult EndGreenContext(Context* green);
void EndGreenContextsOf(const Context* home);

// nullptr for an invalid handle, and for that of a green context that has ended.
Context* FindGreenContext(CUgreenCtx handle);

}  // namespace longwire::shim
