// Green contexts: parts of a device's primary context that have some of its multiprocessors, with
// streams of their own. The interpreter does not tie blocks to multiprocessors: a part limits what
// a cooperative launch may count on, and what the calls answer.
#pragma once

#include "softgpu/driver/state/driver.h"

namespace softgpu {

// What a descriptor (cuDevResourceGenerateDesc) stands for.
struct GreenResources {
  int device = 0;
  CUdevResource resource = {};
};

// What CUgreenCtx points to.
struct GreenContext {
  Context* context = nullptr;
  CUdevResource resource = {};
};

// The green context's handle of a context that is one; null for others.
CUgreenCtx GreenHandle(const Context& context);

// CUDA_ERROR_INVALID_CONTEXT for a handle that is none, _CONTEXT_IS_DESTROYED.
CUresult FindGreen(CUgreenCtx handle, std::shared_ptr<GreenContext>* green);

// Waits for the work of a green context, and ends it.
void EndGreenContext(GreenContext& green) LONGWIRE_EXCLUDES(Driver::mutex);
// Ends the green contexts of a primary context that ends.
void EndGreenContextsOf(Context& home) LONGWIRE_EXCLUDES(Driver::mutex);

}  // namespace softgpu
