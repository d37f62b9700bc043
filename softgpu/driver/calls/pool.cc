// Memory pools: handles and settings. Every pool draws on its whole device.
#include "softgpu/driver/memory/address_space.h"
#include "softgpu/driver/memory/memory_pool.h"
#include "softgpu/driver/stream/capture.h"

namespace softgpu {
namespace {

CUmemoryPool PoolHandle(MemoryPool* pool) { return reinterpret_cast<CUmemoryPool>(pool); }

CUresult EnterPool(CUmemoryPool handle, std::shared_ptr<MemoryPool>* pool) {
  LONGWIRE_TRY(Enter());
  *pool = Driver::Get().pools.Find(handle);
  return *pool ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

// For what could disturb captures, which all but a look at the access could.
CUresult EnterPoolUnsafe(CUmemoryPool handle, std::shared_ptr<MemoryPool>* pool) {
  LONGWIRE_TRY(EnterUnsafe());
  return EnterPool(handle, pool);
}

CUresult EnterDevice(CUdevice ordinal, const void* required, Device** device) {
  LONGWIRE_TRY(Enter());
  *device = Driver::Get().FindDevice(ordinal);
  if (*device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  return required != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

// Of the pools by place and kind of memory there are the devices' own.
CUresult CheckPlace(const CUmemLocation* location, CUmemAllocationType type) {
  if (location == nullptr || type == CU_MEM_ALLOCATION_TYPE_INVALID) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (location->type == CU_MEM_LOCATION_TYPE_DEVICE && type == CU_MEM_ALLOCATION_TYPE_PINNED) {
    bool there = Driver::Get().FindDevice(location->id) != nullptr;
    return there ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  }
  return Refuse("a memory pool that is not of a device's own memory");
}

bool IsFlag(CUmemPool_attribute attribute) {
  return attribute >= CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES &&
         attribute <= CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES;
}
bool IsKnown(CUmemPool_attribute attribute) {
  return attribute >= CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES &&
         attribute <= CU_MEMPOOL_ATTR_USED_MEM_HIGH;
}

}  // namespace
}  // namespace softgpu

using namespace softgpu;

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool* pool, CUdevice ordinal) {
  Device* device;
  LONGWIRE_TRY(EnterDevice(ordinal, pool, &device));
  *pool = PoolHandle(device->default_pool.get());
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetMemPool(CUmemoryPool* pool, CUdevice ordinal) {
  Device* device;
  LONGWIRE_TRY(Enter());
  device = Driver::Get().FindDevice(ordinal);
  if (device == nullptr || pool == nullptr) return CUDA_ERROR_INVALID_VALUE;
  base::MutexLock lock(Driver::mutex);
  *pool = device->current_pool;
  return CUDA_SUCCESS;
}

CUresult cuDeviceSetMemPool(CUdevice ordinal, CUmemoryPool handle) {
  Device* device;
  LONGWIRE_TRY(EnterUnsafe());
  device = Driver::Get().FindDevice(ordinal);
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::shared_ptr<MemoryPool> pool;
  LONGWIRE_TRY(EnterPool(handle, &pool));
  if (pool->device != ordinal) return CUDA_ERROR_INVALID_DEVICE;
  base::MutexLock lock(Driver::mutex);
  device->current_pool = handle;
  return CUDA_SUCCESS;
}

CUresult cuMemGetDefaultMemPool(CUmemoryPool* pool, CUmemLocation* location,
                                CUmemAllocationType type) {
  LONGWIRE_TRY(CheckPlace(location, type));
  return cuDeviceGetDefaultMemPool(pool, location->id);
}
CUresult cuMemGetMemPool(CUmemoryPool* pool, CUmemLocation* location, CUmemAllocationType type) {
  LONGWIRE_TRY(CheckPlace(location, type));
  return cuDeviceGetMemPool(pool, location->id);
}
CUresult cuMemSetMemPool(CUmemLocation* location, CUmemAllocationType type, CUmemoryPool pool) {
  LONGWIRE_TRY(CheckPlace(location, type));
  return cuDeviceSetMemPool(location->id, pool);
}

CUresult cuMemPoolCreate(CUmemoryPool* handle, const CUmemPoolProps* props) {
  LONGWIRE_TRY(EnterUnsafe());
  if (handle == nullptr || props == nullptr || props->allocType != CU_MEM_ALLOCATION_TYPE_PINNED) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (props->location.type != CU_MEM_LOCATION_TYPE_DEVICE || props->handleTypes != 0) {
    return Refuse("a memory pool that is shared or not on a device");
  }
  if (Driver::Get().FindDevice(props->location.id) == nullptr) return CUDA_ERROR_INVALID_VALUE;
  auto pool = std::make_shared<MemoryPool>();
  pool->device = props->location.id;
  *handle = PoolHandle(Driver::Get().pools.Add(std::move(pool)));
  return CUDA_SUCCESS;
}

CUresult cuMemPoolDestroy(CUmemoryPool handle) {
  std::shared_ptr<MemoryPool> pool;
  LONGWIRE_TRY(EnterPoolUnsafe(handle, &pool));
  Device* device = Driver::Get().FindDevice(pool->device);
  if (device->default_pool == pool) return CUDA_ERROR_INVALID_VALUE;
  base::MutexLock lock(Driver::mutex);
  if (device->current_pool == handle) {
    device->current_pool = PoolHandle(device->default_pool.get());
  }
  Driver::Get().pools.Remove(handle);
  return CUDA_SUCCESS;
}

CUresult cuMemPoolSetAttribute(CUmemoryPool handle, CUmemPool_attribute attribute, void* value) {
  std::shared_ptr<MemoryPool> pool;
  LONGWIRE_TRY(EnterPoolUnsafe(handle, &pool));
  if (value == nullptr || !IsKnown(attribute)) return CUDA_ERROR_INVALID_VALUE;
  pool->attributes[attribute] = IsFlag(attribute) ? static_cast<uint64_t>(*static_cast<int*>(value))
                                                  : *static_cast<uint64_t*>(value);
  return CUDA_SUCCESS;
}

// Amounts in use are not kept by pool: they read as what was last set, zero at first.
CUresult cuMemPoolGetAttribute(CUmemoryPool handle, CUmemPool_attribute attribute, void* value) {
  std::shared_ptr<MemoryPool> pool;
  LONGWIRE_TRY(EnterPoolUnsafe(handle, &pool));
  if (value == nullptr || !IsKnown(attribute)) return CUDA_ERROR_INVALID_VALUE;
  if (IsFlag(attribute)) {
    *static_cast<int*>(value) = static_cast<int>(pool->attributes[attribute]);
  } else {
    *static_cast<uint64_t*>(value) = pool->attributes[attribute];
  }
  return CUDA_SUCCESS;
}

CUresult cuMemPoolTrimTo(CUmemoryPool handle, size_t) {
  std::shared_ptr<MemoryPool> pool;
  return EnterPoolUnsafe(handle, &pool);
}
CUresult cuMemPoolSetAccess(CUmemoryPool handle, const CUmemAccessDesc*, size_t) {
  std::shared_ptr<MemoryPool> pool;
  return EnterPoolUnsafe(handle, &pool);
}
CUresult cuMemPoolGetAccess(CUmemAccess_flags* flags, CUmemoryPool handle, CUmemLocation*) {
  std::shared_ptr<MemoryPool> pool;
  LONGWIRE_TRY(EnterPool(handle, &pool));
  if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  return CUDA_SUCCESS;
}
