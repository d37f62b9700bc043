// External memory: here what other programs of the tenant exported, by the descriptors that
// docs/sharing.md tells of.
#pragma once

#include <cuda.h>

#include <cstdint>

namespace longwire::shim {

// The descriptor belongs to the external memory once this succeeded. CUDA_ERROR_OPERATING_SYSTEM
// for one that is not of the session's server, INVALID_VALUE for more bytes than there are.
CUresult ImportExternal(int descriptor, uint64_t bytes, CUexternalMemory* handle);
// A buffer within it, by its device address. It outlives the handle.
CUresult MapExternal(CUexternalMemory handle, uint64_t offset, uint64_t bytes, uint64_t* address);
CUresult DestroyExternal(CUexternalMemory handle);

bool IsExternalBuffer(uint64_t address);
// No work may still use it.
CUresult FreeExternalBuffer(uint64_t address);

}  // namespace longwire::shim
