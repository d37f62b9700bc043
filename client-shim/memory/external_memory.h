// External memory: what other programs of the tenant exported, by the descriptors that
// docs/sharing.md describes.
#pragma once

#include <cuda.h>

#include <cstdint>

namespace longwire::shim {

// On success the external memory owns the descriptor. CUDA_ERROR_OPERATING_SYSTEM if it is not of
// memory on the session's server, CUDA_ERROR_INVALID_VALUE if the memory has fewer bytes.
CUresult ImportExternal(int descriptor, uint64_t bytes, CUexternalMemory* handle);
// A buffer within it, by its device address. It outlives the handle.
CUresult MapExternal(CUexternalMemory handle, uint64_t offset, uint64_t bytes, uint64_t* address);
CUresult DestroyExternal(CUexternalMemory handle);

bool IsExternalBuffer(uint64_t address);
// No work may use it any more.
CUresult FreeExternalBuffer(uint64_t address);

}  // namespace longwire::shim
