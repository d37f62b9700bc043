#include "client-shim/memory/pool_kinds.h"

#include <algorithm>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "client-shim/context/properties.h"
#include "client-shim/mirror/host_memory.h"
#include "client-shim/mirror/managed_memory.h"
#include "client-shim/stream/stream.h"
#include "client-shim/support/never_destroyed.h"

namespace longwire::shim {
namespace {

// The id tells the allocation from a later one at the same address: the memory is freed when its
// context ends.
struct Free {
  PoolKind kind = PoolKind::kManaged;
  uint64_t address = 0;
  uint64_t id = 0;
  std::vector<StreamPoint> before;
};

struct Frees {
  base::Mutex mutex{base::ranks::kPoolFrees};
  std::vector<Free> waiting LONGWIRE_GUARDED_BY(mutex);
};

Frees& TheFrees() {
  static NeverDestroyed<Frees> frees;
  return *frees;
}

// After a sticky error a context runs nothing any more.
bool IsPast(const StreamPoint& point) {
  return point.stream->finished.load(std::memory_order_acquire) >= point.position ||
         point.stream->context->sticky.load(std::memory_order_acquire) != 0;
}

bool IsDue(const Free& free) { return std::all_of(free.before.begin(), free.before.end(), IsPast); }

void GiveBack(const Free& free) {
  for (const StreamPoint& point : free.before) Release(point.stream);
  if (free.kind == PoolKind::kManaged) {
    FreeIdleManaged(free.address, free.id);
  } else {
    FreeIdleHost(free.address, free.id);
  }
}

std::vector<Free> TakeDue() {
  Frees& frees = TheFrees();
  base::MutexLock lock(frees.mutex);
  auto due = std::partition(frees.waiting.begin(), frees.waiting.end(),
                            [](const Free& free) { return !IsDue(free); });
  std::vector<Free> taken(std::make_move_iterator(due),
                          std::make_move_iterator(frees.waiting.end()));
  frees.waiting.erase(due, frees.waiting.end());
  return taken;
}

uint64_t NumberOf(PoolKind kind, uint64_t address) {
  ManagedRange managed;
  HostRange host;
  if (kind == PoolKind::kManaged) return FindManaged(address, &managed) ? managed.id : 0;
  return FindHost(address, &host) ? host.id : 0;
}

CUresult Allocate(PoolKind kind, Context* context, uint64_t bytes, uint64_t* address) {
  if (kind == PoolKind::kManaged) return AllocateManagedIn(context, bytes, address);
  void* memory = nullptr;
  CUresult result = AllocateHostIn(context, bytes, CU_MEMHOSTALLOC_PORTABLE, &memory);
  *address = reinterpret_cast<uint64_t>(memory);
  return result;
}

}  // namespace

CUresult PlaceOf(const CUmemLocation& location, CUmemAllocationType type, PoolPlace* place) {
  bool managed = type == CU_MEM_ALLOCATION_TYPE_MANAGED;
  bool known = managed || type == CU_MEM_ALLOCATION_TYPE_PINNED;
  switch (location.type) {
    case CU_MEM_LOCATION_TYPE_DEVICE:
      if (!known || FindDevice(location.id) == nullptr) return CUDA_ERROR_INVALID_VALUE;
      *place = {managed ? PoolKind::kManaged : PoolKind::kDevice, location.id};
      return CUDA_SUCCESS;
    case CU_MEM_LOCATION_TYPE_HOST:
      if (!known) return CUDA_ERROR_INVALID_VALUE;
      *place = {managed ? PoolKind::kManaged : PoolKind::kHost, PoolPlace::kOnHost};
      return CUDA_SUCCESS;
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
      // The preferred location of managed memory is only a hint; that of pinned memory is not.
      if (!managed) return known ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE;
      [[fallthrough]];
    case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT:
      if (!managed) return CUDA_ERROR_INVALID_VALUE;
      *place = {PoolKind::kManaged, PoolPlace::kOnHost};
      return CUDA_SUCCESS;
    case CU_MEM_LOCATION_TYPE_NONE:
      if (!managed) return CUDA_ERROR_INVALID_VALUE;
      *place = {PoolKind::kManaged, PoolPlace::kAnywhere};
      return CUDA_SUCCESS;
    default:
      return managed ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult AllocateOfKind(PoolKind kind, Context* context, uint64_t bytes, uint64_t* address) {
  FreeWhatIsDue();
  CUresult result = Allocate(kind, context, bytes, address);
  if (result != CUDA_ERROR_OUT_OF_MEMORY) return result;
  // Pending frees may make room.
  (void)AwaitWork(UnfinishedWorkOfAll());  // the second attempt says what is wrong
  FreeWhatIsDue();
  return Allocate(kind, context, bytes, address);
}

void FreeBehind(PoolKind kind, uint64_t address, std::vector<StreamPoint> before) {
  Free free{kind, address, NumberOf(kind, address), std::move(before)};
  {
    Frees& frees = TheFrees();
    base::MutexLock lock(frees.mutex);
    frees.waiting.push_back(std::move(free));
  }
  FreeWhatIsDue();
}

void FreeWhatIsDue() {
  for (const Free& free : TakeDue()) GiveBack(free);
}

}  // namespace longwire::shim
