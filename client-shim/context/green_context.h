// Green contexts: parts of a device's primary context (their home) with some of its multiprocessors
// and streams of their own. Memory, modules, events and errors are the home's.
#pragma once

#include <cuda.h>

#include "client-shim/context/context.h"

namespace longwire::shim {

// Keeps its home active. Errors as cuGreenCtxCreate.
CUresult NewGreenContext(Context* home, CUdevResourceDesc descriptor, unsigned flags,
                         Context** created);

// Waits for its work and ends it: its streams answer CUDA_ERROR_CONTEXT_IS_DESTROYED from then on.
// The home stays as it is.
CUresult EndGreenContext(Context* green);
void EndGreenContextsOf(const Context* home);

// nullptr for a handle that is none, or of one that has ended.
Context* FindGreenContext(CUgreenCtx handle);

}  // namespace longwire::shim
