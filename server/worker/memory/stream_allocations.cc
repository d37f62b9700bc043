#include "server/worker/memory/stream_allocations.h"

#include <algorithm>

#include "base/memory_sizes.h"
#include "server/worker/memory/array_bytes.h"
#include "server/worker/memory/memory.h"
#include "server/worker/support/current_context.h"
#include "server/worker/support/helpers.h"

namespace longwire::worker {
namespace {

// The driver takes memory for a pool in such steps.
constexpr uint64_t kUnit = uint64_t{32} << 20;

}  // namespace

CUresult StreamAllocations::Allocate(const Stream& stream, uint64_t position, uint64_t bytes,
                                     CUdeviceptr* address) {
  int32_t device = stream.context->device;
  uint64_t size = AllocatedBytes(std::min(bytes, base::kMaxMemoryBytes));
  {
    base::MutexLock lock(mutex_);
    Pool& pool = pools_[device];
    uint64_t need = base::RoundUp(pool.used + size, kUnit);
    if (need > pool.charge.bytes()) {
      if (pool.ask == Ask::kRuns) return kNotYet;
      bool refused = pool.ask == Ask::kRefused && pool.asked_by == position;
      pool.ask = refused ? Ask::kNone : Ask::kRuns;
      if (refused) return CUDA_ERROR_OUT_OF_MEMORY;
      pool.asked_by = position;
      uint64_t more = need - pool.charge.bytes();
      lock.Unlock();
      uses_.helpers.Post(Helpers::kLoaderThread, [this, device, more] { AskKeeper(device, more); });
      return kNotYet;
    }
    pool.used += size;
  }
  CUresult result = uses_.driver.cuMemAllocAsync(address, bytes, stream.handle);
  base::MutexLock lock(mutex_);
  Pool& pool = pools_[device];
  if (result == CUDA_SUCCESS) {
    pool.alive[*address] = size;
  } else {
    pool.used -= size;
  }
  return result;
}

void StreamAllocations::AskKeeper(int32_t device, uint64_t bytes) {
  Charge charge;
  CUresult result = uses_.charges.Take(device, bytes, &charge);
  {
    base::MutexLock lock(mutex_);
    Pool& pool = pools_[device];
    pool.ask = result == CUDA_SUCCESS ? Ask::kNone : Ask::kRefused;
    pool.charge.Absorb(std::move(charge));
  }
  uses_.up.PokeConsumer();
}

uint64_t StreamAllocations::Free(int32_t device, CUdeviceptr address) {
  base::MutexLock lock(mutex_);
  auto pool = pools_.find(device);
  if (pool == pools_.end()) return 0;
  auto found = pool->second.alive.find(address);
  if (found == pool->second.alive.end()) return 0;
  uint64_t bytes = found->second;
  pool->second.alive.erase(found);
  return bytes;
}

void StreamAllocations::Freed(int32_t device, uint64_t bytes) {
  uses_.helpers.Post(Helpers::kMemoryThread, [this, device, bytes] { Settle(device, bytes); });
}

// What the pool has kept and cannot trim still counts.
void StreamAllocations::Settle(int32_t device, uint64_t freed) {
  const Device& of = uses_.devices[static_cast<size_t>(device)];
  CUmemoryPool handle = nullptr;
  cuuint64_t reserved = 0;
  uses_.current_context.SetPrimary(of.primary);
  if (uses_.driver.cuDeviceGetDefaultMemPool(&handle, of.handle) == CUDA_SUCCESS) {
    uses_.driver.cuMemPoolTrimTo(handle, 0);
    uses_.driver.cuMemPoolGetAttribute(handle, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &reserved);
  }
  Charge beyond;  // ends after the lock
  base::MutexLock lock(mutex_);
  Pool& pool = pools_[device];
  pool.used -= std::min(pool.used, freed);
  beyond = pool.charge.Beyond(std::max<uint64_t>(base::RoundUp(pool.used, kUnit), reserved));
}

}  // namespace longwire::worker
