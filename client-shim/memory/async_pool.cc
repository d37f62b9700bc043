#include "client-shim/memory/async_pool.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <vector>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "base/try.h"
#include "client-shim/context/context.h"
#include "client-shim/context/current_context.h"
#include "client-shim/context/properties.h"
#include "client-shim/copy/remap_copies.h"
#include "client-shim/graph/graph_memory.h"
#include "client-shim/memory/device_memory.h"
#include "client-shim/memory/opened_memory.h"
#include "client-shim/memory/placed_memory.h"
#include "client-shim/memory/pointers.h"
#include "client-shim/mirror/host_memory.h"
#include "client-shim/mirror/managed_memory.h"
#include "client-shim/session/session.h"
#include "client-shim/stream/capture.h"
#include "client-shim/stream/event.h"
#include "client-shim/stream/program_streams.h"
#include "client-shim/support/never_destroyed.h"
#include "longwire/calls.h"

namespace longwire::shim {
namespace {

constexpr uint64_t kPiece = 32 << 20;

using PoolTable = HandleTable<Pool, HandleKind::kMemoryPool>;

struct Pools {
  PoolTable table;
  base::Mutex mutex{base::ranks::kMemoryPools};
  std::map<PoolPlace, CUmemoryPool> by_default LONGWIRE_GUARDED_BY(mutex);
  std::map<PoolPlace, CUmemoryPool> current LONGWIRE_GUARDED_BY(mutex);
  // By address: pool, bytes.
  std::unordered_map<uint64_t, std::pair<Pool*, uint64_t>> owner LONGWIRE_GUARDED_BY(mutex);
};

Pools& ThePools() {
  static NeverDestroyed<Pools> pools;
  return *pools;
}

CUmemoryPool NewPool(Pools& pools, const PoolPlace& place) {
  Pool* pool = pools.table.New();
  if (pool == nullptr) return nullptr;
  pool->place = place;
  pool->device = place.kind == PoolKind::kDevice ? place.device : PoolPlace::kAnywhere;
  pool->handle = reinterpret_cast<CUmemoryPool>(pools.table.Publish(pool));
  return pool->handle;
}

CUmemoryPool DefaultAt(Pools& pools, const PoolPlace& place) LONGWIRE_REQUIRES(pools.mutex) {
  CUmemoryPool& pool = pools.by_default[place];
  if (pool == nullptr) pool = NewPool(pools, place);
  return pool;
}

// Whether a captured allocation from the pool can become a node: not managed or pinned memory.
bool CanBeCaptured(const Pool* pool, const Stream* stream) {
  return pool == nullptr || (pool->place.kind == PoolKind::kDevice && !pool->imported &&
                             pool->device == stream->context->device);
}

CUresult AllocateInGraph(const Where& where, Stream* stream, uint64_t bytes, uint64_t* address) {
  LONGWIRE_TRY(RefuseIfSeveral("memory of a graph"));
  calls::lwAllocAsync call;
  call.bytes = bytes;
  auto answer = where.session->CallAndWait(where, call);
  LONGWIRE_TRY(answer.code);
  if (!NotePlaced(answer.reply.address, bytes)) {
    return where.session->Distrust("allocated in the program's memory");
  }
  *address = answer.reply.address;
  AddGraphMemory(*address, bytes, stream->context);
  return CUDA_SUCCESS;
}

// In whole pieces, by which the driver's pools grow and shrink.
uint64_t InPieces(uint64_t bytes) {
  return bytes > UINT64_MAX - kPiece ? UINT64_MAX : (bytes + kPiece - 1) / kPiece * kPiece;
}

void RaiseTo(std::atomic<uint64_t>& count, uint64_t value) {
  uint64_t now = count.load();
  while (now < value && !count.compare_exchange_weak(now, value)) {
  }
}

// Counts the bytes as used. False if that exceeds the pool's limit.
bool Claim(Pool* pool, uint64_t bytes) {
  uint64_t used = pool->used.load();
  do {
    if (pool->limit != 0 && (used > pool->limit || bytes > pool->limit - used)) return false;
  } while (!pool->used.compare_exchange_weak(used, used + bytes));
  return true;
}

// Releases what exceeds `keep` and is not in use. The bytes that stay reserved.
uint64_t Reserve(Pool* pool, uint64_t keep) {
  uint64_t reserved = std::min(pool->reserved.load(), InPieces(keep));
  pool->reserved.store(std::max(InPieces(pool->used.load()), reserved));
  return pool->reserved.load();
}

// The bytes that Claim counted are allocated at the address.
void Account(Pool* pool, uint64_t address, uint64_t bytes) {
  uint64_t used = pool->used.load();
  RaiseTo(pool->used_high, used);
  RaiseTo(pool->reserved, InPieces(used));
  RaiseTo(pool->reserved_high, pool->reserved.load());
  Pools& pools = ThePools();
  base::MutexLock lock(pools.mutex);
  pools.owner[address] = {pool, bytes};
}

}  // namespace

void Unaccount(uint64_t address) {
  Pools& pools = ThePools();
  base::MutexLock lock(pools.mutex);
  auto found = pools.owner.find(address);
  if (found == pools.owner.end()) return;
  found->second.first->used.fetch_sub(found->second.second);
  pools.owner.erase(found);
}

static bool IsThere(PoolKind kind, uint64_t address) {
  Allocation allocation;
  ManagedRange managed;
  HostRange host;
  if (kind == PoolKind::kManaged) return FindManaged(address, &managed);
  return kind == PoolKind::kHost ? FindHost(address, &host) : FindAllocation(address, &allocation);
}

void UnaccountFreed() {
  Pools& pools = ThePools();
  base::MutexLock lock(pools.mutex);
  std::erase_if(pools.owner, [](const auto& entry) {
    const auto& [address, owned] = entry;
    if (IsOpenedPiece(address) || IsThere(owned.first->place.kind, address)) return false;
    owned.first->used.fetch_sub(owned.second);
    return true;
  });
}

CUresult PoolAt(const PoolPlace& place, bool is_default, CUmemoryPool* pool) {
  Pools& pools = ThePools();
  base::MutexLock lock(pools.mutex);
  auto current = pools.current.find(place);
  bool other = !is_default && current != pools.current.end();
  *pool = other ? current->second : DefaultAt(pools, place);
  return *pool == nullptr ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

CUresult SetPoolAt(const PoolPlace& place, CUmemoryPool handle) {
  Pool* pool = FindPool(handle);
  if (pool == nullptr || pool->place != place || pool->imported) return CUDA_ERROR_INVALID_VALUE;
  Pools& pools = ThePools();
  base::MutexLock lock(pools.mutex);
  pools.current[place] = handle;
  return CUDA_SUCCESS;
}

CUresult DevicePool(int device, bool is_default, CUmemoryPool* pool) {
  if (FindDevice(device) == nullptr) {
    return is_default ? CUDA_ERROR_INVALID_DEVICE : CUDA_ERROR_INVALID_VALUE;
  }
  return PoolAt({PoolKind::kDevice, device}, is_default, pool);
}

CUresult SetDevicePool(int device, CUmemoryPool handle) {
  if (FindDevice(device) == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return SetPoolAt({PoolKind::kDevice, device}, handle);
}

CUresult CreatePool(const PoolPlace& place, bool shareable, uint64_t limit, CUmemoryPool* pool) {
  Pools& pools = ThePools();
  base::MutexLock lock(pools.mutex);
  *pool = NewPool(pools, place);
  if (*pool == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  FindPool(*pool)->shareable = shareable;
  FindPool(*pool)->limit = InPieces(limit);
  return CUDA_SUCCESS;
}

CUresult ImportPool(const SharedToken& source, CUmemoryPool* pool) {
  LONGWIRE_TRY(CreatePool({PoolKind::kDevice, 0}, false, 0, pool));
  FindPool(*pool)->imported = true;
  FindPool(*pool)->source = source;
  return CUDA_SUCCESS;
}

CUresult ImportIntoPool(Pool* pool, const SharedPiece& piece, uint64_t* address) {
  if (pool->source != SharedToken{piece.process, piece.pool}) return CUDA_ERROR_INVALID_VALUE;
  Context* context = nullptr;
  LONGWIRE_TRY(RequireHealthyContext(&context));
  LONGWIRE_TRY(OpenShared(piece, context, address));
  pool->device = DeviceOfAddress(*address);
  pool->used.fetch_add(piece.bytes);
  Account(pool, *address, piece.bytes);
  return CUDA_SUCCESS;
}

bool IsImported(uint64_t address) { return PoolOf(address) != nullptr && IsOpenedPiece(address); }

CUresult CloseImported(uint64_t address) {
  CUresult result = CloseShared(address);
  if (result == CUDA_SUCCESS && !IsOpenedPiece(address)) Unaccount(address);
  return result;
}

Pool* PoolOf(uint64_t address) {
  Pools& pools = ThePools();
  base::MutexLock lock(pools.mutex);
  auto found = pools.owner.find(address);
  return found == pools.owner.end() ? nullptr : found->second.first;
}

CUresult DestroyPool(CUmemoryPool handle) {
  Pool* pool = FindPool(handle);
  if (pool == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Pools& pools = ThePools();
  base::MutexLock lock(pools.mutex);
  if (DefaultAt(pools, pool->place) == handle) return CUDA_ERROR_INVALID_VALUE;
  auto current = pools.current.find(pool->place);
  if (current != pools.current.end() && current->second == handle) pools.current.erase(current);
  // The object is not recycled: allocations of a destroyed pool are valid until they are freed.
  return pools.table.Retire(pool) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

Pool* FindPool(CUmemoryPool pool) {
  return ThePools().table.Find(reinterpret_cast<uint64_t>(pool));
}

CUresult SetPoolAttribute(CUmemoryPool handle, CUmemPool_attribute attribute, const void* value) {
  Pool* pool = FindPool(handle);
  if (pool == nullptr) return CUDA_ERROR_INVALID_VALUE;
  switch (attribute) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
      pool->reuse_follow_events.store(*static_cast<const int*>(value));
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
      pool->reuse_opportunistic.store(*static_cast<const int*>(value));
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
      pool->reuse_internal.store(*static_cast<const int*>(value));
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
      pool->release_threshold.store(*static_cast<const cuuint64_t*>(value));
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
      if (*static_cast<const cuuint64_t*>(value) != 0) return CUDA_ERROR_INVALID_VALUE;
      pool->reserved_high.store(Reserve(pool, pool->release_threshold.load()));
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
      if (*static_cast<const cuuint64_t*>(value) != 0) return CUDA_ERROR_INVALID_VALUE;
      pool->used_high.store(pool->used.load());
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult GetPoolAttribute(CUmemoryPool handle, CUmemPool_attribute attribute, void* value) {
  Pool* pool = FindPool(handle);
  if (pool == nullptr) return CUDA_ERROR_INVALID_VALUE;
  auto* as_int = static_cast<int*>(value);
  auto* as_bytes = static_cast<cuuint64_t*>(value);
  switch (attribute) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
      *as_int = pool->reuse_follow_events.load();
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
      *as_int = pool->reuse_opportunistic.load();
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
      *as_int = pool->reuse_internal.load();
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
      *as_bytes = pool->release_threshold.load();
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
      *as_bytes = Reserve(pool, pool->release_threshold.load());
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
      *as_bytes = pool->used.load();
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
      *as_bytes = pool->reserved_high.load();
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
      *as_bytes = pool->used_high.load();
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

// Changes only what the program sees: a pool's free memory is there for all its allocations anyway.
CUresult TrimPool(CUmemoryPool handle, uint64_t bytes_to_keep) {
  Pool* pool = FindPool(handle);
  if (pool == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Reserve(pool, bytes_to_keep);
  FreeWhatIsDue();
  return CUDA_SUCCESS;
}

static CUresult AllocateFrom(Pool* pool, Stream* stream, uint64_t bytes, uint64_t* address) {
  if (pool->place.kind != PoolKind::kDevice) {
    return AllocateOfKind(pool->place.kind, stream->context, bytes, address);
  }
  return MemoryOf(pool->device)->Allocate(stream->context, bytes, address, stream);
}

CUresult AllocateInStream(Pool* pool, uint64_t bytes, CUstream handle, uint64_t* address) {
  Stream* stream = nullptr;
  Where where;
  LONGWIRE_TRY(ResolveStream(handle, &stream));
  LONGWIRE_TRY(OpenWhere(stream, &where));
  if (bytes == 0) {  // nothing, and no error
    *address = 0;
    return CUDA_SUCCESS;
  }
  if (where.flags != 0) {
    return CanBeCaptured(pool, stream) ? AllocateInGraph(where, stream, bytes, address)
                                       : CUDA_ERROR_NOT_SUPPORTED;
  }
  LONGWIRE_TRY(RefuseUnsafeCall());
  if (pool == nullptr) {
    CUmemoryPool current = nullptr;
    LONGWIRE_TRY(DevicePool(stream->context->device, false, &current));
    pool = FindPool(current);
  }
  if (pool->imported) return CUDA_ERROR_INVALID_VALUE;
  if (!Claim(pool, bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
  CUresult result = AllocateFrom(pool, stream, bytes, address);
  if (result == CUDA_SUCCESS) {
    Account(pool, *address, bytes);
  } else {
    pool->used.fetch_sub(bytes);
  }
  return result;
}

// True if the buffer is the source of a deferred copy and its memory was moved to the target.
bool FreeMoved(uint64_t address, CUstream handle) {
  Stream* stream = nullptr;
  const bool deferred = std::ranges::any_of(Sessions(), &ClientSession::has_deferred);
  if (!deferred || ResolveForWait(handle, &stream) != CUDA_SUCCESS) return false;
  if (stream->capture.load() != nullptr || IsUnsafeCallForbidden()) return false;
  if (!FreeAfterCopy(address, stream)) return false;
  Unaccount(address);
  return true;
}

CUresult FreeInStream(uint64_t address, CUstream handle) {
  if (FreeMoved(address, handle)) return CUDA_SUCCESS;
  Stream* stream = nullptr;
  Where where;
  CUresult result = ResolveStream(handle, &stream);
  if (result == CUDA_SUCCESS) result = OpenWhere(stream, &where);
  if (result != CUDA_SUCCESS || address == 0) return result;
  if (where.flags == 0) result = RefuseUnsafeCall();
  if (result != CUDA_SUCCESS) return result;
  Allocation allocation;
  bool own = FindAllocation(address, &allocation) && allocation.address == address;
  if (where.flags == 0 && IsImported(address)) {
    std::vector<StreamPoint> before = UnfinishedBefore(stream);
    result = WaitForWork(before);
    if (result == CUDA_SUCCESS) result = CloseImported(address);
    return result;
  }
  Pool* pool = PoolOf(address);
  if (pool != nullptr && pool->place.kind != PoolKind::kDevice) {
    if (where.flags != 0) return CUDA_ERROR_INVALID_VALUE;
    std::vector<StreamPoint> before = UnfinishedBefore(stream);
    Unaccount(address);
    FreeBehind(pool->place.kind, address, std::move(before));
    return CUDA_SUCCESS;
  }
  if (where.flags != 0 || !own) {
    ManagedRange managed;
    if (FindManaged(address, &managed)) return CUDA_ERROR_NOT_SUPPORTED;
    // A graph's node can only free memory that a graph allocated.
    if (own || !IsGraphMemory(address)) return CUDA_ERROR_INVALID_VALUE;
    if (where.flags == 0 && !FreeGraphMemory(address)) return CUDA_ERROR_INVALID_VALUE;
    calls::lwFreeAsync call;
    call.address = address;
    uint64_t position = where.session->Submit(where, call);
    return ClientSession::Queued(position);
  }
  std::vector<StreamPoint> before = UnfinishedBefore(stream);
  Unaccount(address);
  bool freed = MemoryOf(DeviceOfAddress(address))
                   ->Free(address, std::move(before), mempool::Freed::kInStream);
  return freed ? PlaceBorder(stream) : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace longwire::shim
