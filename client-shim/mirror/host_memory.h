// Memory of the program that counts as pinned: allocated by cuMemHostAlloc or registered. What is
// neither pinned nor device memory is pageable.
#pragma once

#include <cuda.h>

#include <cstdint>

namespace longwire::shim {

struct Context;

struct HostRange {
  uint64_t address = 0;
  uint64_t bytes = 0;
  unsigned flags = 0;
  bool registered = false;
  uint64_t id = 0;  // as CU_POINTER_ATTRIBUTE_BUFFER_ID
  CUcontext context = nullptr;
};

CUresult AllocateHost(uint64_t bytes, unsigned flags, void** address);
// In the context, which is healthy.
CUresult AllocateHostIn(Context* context, uint64_t bytes, unsigned flags, void** address);
CUresult FreeHost(void* address);
// The allocation of that number, if it is still there; no work uses it any more.
void FreeIdleHost(uint64_t address, uint64_t id);
CUresult RegisterHost(void* address, uint64_t bytes, unsigned flags);
CUresult UnregisterHost(void* address);
bool FindHost(uint64_t address, HostRange* range);
// The current context; where the calling thread has none, the one that the memory was pinned in.
CUresult ContextOfHost(const void* address, Context** context);
// All of it in one pinned range.
bool IsPinned(const void* address, uint64_t bytes);

}  // namespace longwire::shim
