// Pinned memory of the program: allocated by cuMemHostAlloc, or registered. Memory that is neither
// pinned nor a device's is pageable.
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
  bool of_file = false;  // registered, and in mappings of files
  uint64_t id = 0;       // as CU_POINTER_ATTRIBUTE_BUFFER_ID
  CUcontext context = nullptr;
};

CUresult AllocateHost(uint64_t bytes, unsigned flags, void** address);
// In the context, which is healthy.
CUresult AllocateHostIn(Context* context, uint64_t bytes, unsigned flags, void** address);
CUresult FreeHost(void* address);
// Frees the allocation with that id, if it still exists. No work may use it any more.
void FreeIdleHost(uint64_t address, uint64_t id);
CUresult RegisterHost(void* address, uint64_t bytes, unsigned flags);
CUresult UnregisterHost(void* address);
bool FindHost(uint64_t address, HostRange* range);
// The current context, or the one in which the memory was pinned if the calling thread has none.
CUresult ContextOfHost(const void* address, Context** context);
// Whether all of it lies in one pinned range.
bool IsPinned(const void* address, uint64_t bytes);

}  // namespace longwire::shim
