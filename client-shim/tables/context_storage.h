// Values that libraries attach to a context (the driver's private context-local storage table): a
// map from (context, key) to a value with a destructor. Every copy of the CUDA runtime in a process
// stores its per-context state here under a key of its own and looks it up in each call, so each
// thread caches its last result.
#pragma once

#include <cuda.h>

namespace longwire::shim {

using StorageDestructor = void (*)(CUcontext context, void* key, void* value);

// `context` may be null or -1 for the calling thread's current context. Without one all three
// return CUDA_ERROR_INVALID_CONTEXT.
CUresult PutContextStorage(CUcontext context, void* key, void* value, StorageDestructor destroy);
CUresult DeleteContextStorage(CUcontext context, void* key);
// CUDA_ERROR_INVALID_HANDLE if there is no value.
CUresult GetContextStorage(void** value, CUcontext context, void* key);

// Runs the destructors of all values of `context`, which is being destroyed.
void DropContextStorage(CUcontext context);

}  // namespace longwire::shim
