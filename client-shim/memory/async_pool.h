// Emulated pools of stream-ordered memory: what is freed in a stream may be used again in that
// stream at once, and elsewhere once the stream has passed the free.
#pragma once

#include <cuda.h>

#include <atomic>
#include <cstdint>

#include "client-shim/memory/pool_kinds.h"
#include "client-shim/memory/sharing.h"
#include "client-shim/stream/stream.h"

namespace longwire::shim {

struct Pool {
  uint64_t table_index = 0;
  CUmemoryPool handle = nullptr;
  PoolPlace place;
  int device = 0;          // of a pool of a device's own memory
  bool shareable = false;  // its memory may be shared with other programs
  bool imported = false;   // its memory is another program's: nothing is allocated from it here
  SharedToken source{};    // imported: whose pool, by process and number
  std::atomic<uint64_t> accessors{0};  // other devices with access, one bit each
  std::atomic<uint64_t> release_threshold{0};
  std::atomic<int> reuse_follow_events{1}, reuse_opportunistic{1}, reuse_internal{1};
  uint64_t limit = 0;  // bytes that may be allocated from it; 0: no limit
  std::atomic<uint64_t> used{0}, used_high{0};
  std::atomic<uint64_t> reserved{0}, reserved_high{0};  // as the driver would hold them
};

// The default pool of a location, or its current one.
CUresult PoolAt(const PoolPlace& place, bool is_default, CUmemoryPool* pool);
CUresult SetPoolAt(const PoolPlace& place, CUmemoryPool pool);
// The same for a device's own memory.
CUresult DevicePool(int device, bool is_default, CUmemoryPool* pool);
CUresult SetDevicePool(int device, CUmemoryPool pool);
CUresult CreatePool(const PoolPlace& place, bool shareable, uint64_t limit, CUmemoryPool* pool);
// The device is known with the first memory that is imported.
CUresult ImportPool(const SharedToken& source, CUmemoryPool* pool);
CUresult DestroyPool(CUmemoryPool pool);
Pool* FindPool(CUmemoryPool pool);
// The pool of the allocation or imported piece that starts at the address; nullptr if there is
// none.
Pool* PoolOf(uint64_t address);
CUresult SetPoolAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, const void* value);
CUresult GetPoolAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void* value);
CUresult TrimPool(CUmemoryPool pool, uint64_t bytes_to_keep);

// `pool` nullptr: the current one of the stream's device.
CUresult AllocateInStream(Pool* pool, uint64_t bytes, CUstream stream, uint64_t* address);
// Opens another program's memory as part of the pool. CUDA_ERROR_INVALID_VALUE if it belongs to
// another pool.
CUresult ImportIntoPool(Pool* pool, const SharedPiece& piece, uint64_t* address);
bool IsImported(uint64_t address);
// No work may use it any more. The last close of a piece takes it out of the pool's counts.
CUresult CloseImported(uint64_t address);
CUresult FreeInStream(uint64_t address, CUstream stream);
// Takes the allocation that starts at the address out of its pool's counts, if it has a pool. For
// allocations that are freed by another call than FreeInStream.
void Unaccount(uint64_t address);
// The same for all allocations that were freed with their context.
void UnaccountFreed();

}  // namespace longwire::shim
