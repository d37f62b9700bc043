// What pointers are.
#include "client-shim/context/context.h"
#include "client-shim/context/properties.h"
#include "client-shim/memory/async_pool.h"
#include "client-shim/memory/device_memory.h"
#include "client-shim/memory/pointers.h"
#include "client-shim/mirror/host_memory.h"
#include "client-shim/mirror/mirrors.h"
#include "longwire/shim_hand_written.h"

namespace longwire::shim::hand {
namespace {

constexpr uint64_t kPinnedIds = uint64_t{1} << 48;  // ids of device memory are smaller

template <class T>
CUresult Give(void* data, T value) {
  *static_cast<T*>(data) = value;
  return CUDA_SUCCESS;
}

unsigned long long HandleTypesOf(const Pool* pool) {
  return pool != nullptr && pool->shareable ? CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR : 0;
}

// What holds for device memory and for pinned memory.
CUresult OfRange(void* data, CUpointer_attribute attribute, uint64_t address, uint64_t bytes) {
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      return Give<CUdeviceptr>(data, address);
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      return Give<size_t>(data, bytes);
    case CU_POINTER_ATTRIBUTE_MAPPED:
      return Give<int>(data, 1);
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
      return Give<int>(data, 0);
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
      return Give<unsigned>(data, CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE);
    case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
      return Give<bool>(data, false);  // chunks are not made for it
    default:
      return CUDA_ERROR_NOT_SUPPORTED;
  }
}

CUresult OfDevice(void* data, CUpointer_attribute attribute, CUdeviceptr ptr,
                  const DeviceRange& range) {
  const Pool* pool = PoolOf(range.address);
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
      return Give(data, range.context->handle);
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      return Give<unsigned>(data, CU_MEMORYTYPE_DEVICE);
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      return Give<CUdeviceptr>(data, ptr);
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      if (range.managed) return Give<void*>(data, reinterpret_cast<void*>(ptr));
      return CUDA_ERROR_INVALID_VALUE;
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
      return Give<int>(data, HasSyncMemops(ptr) ? 1 : 0);
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
      return Give<unsigned long long>(data, range.id);
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      return Give<int>(data, range.managed ? 1 : 0);
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      return Give<int>(data, range.context->device);
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE: {
      Allocation allocation;
      return Give<int>(data, FindAllocation(ptr, &allocation) && pool == nullptr);
    }
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
      return Give<unsigned long long>(data, HandleTypesOf(pool));
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
      return Give<CUmemoryPool>(data, pool == nullptr ? nullptr : pool->handle);
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
      return Give<unsigned long long>(data, range.id);
    default:
      return OfRange(data, attribute, range.address, range.bytes);
  }
}

CUresult OfPinned(void* data, CUpointer_attribute attribute, CUdeviceptr ptr,
                  const HostRange& range) {
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
      return Give(data, range.context);
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      return Give<unsigned>(data, CU_MEMORYTYPE_HOST);
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      return Give<void*>(data, reinterpret_cast<void*>(ptr));
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER: {
      uint64_t device_address = ptr;
      FindMirror(ptr, &device_address);
      return Give<CUdeviceptr>(data, device_address);
    }
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
      return Give<int>(data, 0);
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
      return Give<unsigned long long>(data, kPinnedIds + range.id);
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      return Give<int>(data, 0);
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: {
      CUdevice device = 0;
      Context* context = FindContext(range.context);
      if (context != nullptr) device = context->device;
      return Give<int>(data, device);
    }
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
      return Give<int>(data, 0);
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
      return Give<unsigned long long>(data, 0);
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE: {
      const Pool* pool = PoolOf(range.address);
      return Give<CUmemoryPool>(data, pool == nullptr ? nullptr : pool->handle);
    }
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
      return Give<unsigned long long>(data, kPinnedIds + range.id);
    default:
      return OfRange(data, attribute, range.address, range.bytes);
  }
}

}  // namespace

CUresult cuPointerGetAttribute(void* data, CUpointer_attribute attribute, CUdeviceptr ptr) {
  if (data == nullptr) return CUDA_ERROR_INVALID_VALUE;
  HostRange host;
  if (FindHost(ptr, &host)) return OfPinned(data, attribute, ptr, host);
  DeviceRange range;
  if (FindDeviceRange(ptr, &range)) return OfDevice(data, attribute, ptr, range);
  return CUDA_ERROR_INVALID_VALUE;
}

CUresult cuPointerGetAttributes(unsigned int numAttributes, CUpointer_attribute* attributes,
                                void** data, CUdeviceptr ptr) {
  if (numAttributes == 0 || attributes == nullptr || data == nullptr) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  for (unsigned i = 0; i < numAttributes; ++i) {
    if (data[i] == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (hand::cuPointerGetAttribute(data[i], attributes[i], ptr) == CUDA_SUCCESS) continue;
    // What does not apply to the pointer reads as nothing: this form does not fail for it.
    switch (attributes[i]) {
      case CU_POINTER_ATTRIBUTE_CONTEXT:
      case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
      case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      case CU_POINTER_ATTRIBUTE_BUFFER_ID:
      case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
        *static_cast<uint64_t*>(data[i]) = 0;
        break;
      case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        *static_cast<int*>(data[i]) = -2;  // as the driver: no device's memory
        break;
      case CU_POINTER_ATTRIBUTE_P2P_TOKENS:
        break;
      default:
        *static_cast<unsigned*>(data[i]) = 0;
    }
  }
  return CUDA_SUCCESS;
}

CUresult cuPointerSetAttribute(const void* value, CUpointer_attribute attribute, CUdeviceptr ptr) {
  if (value == nullptr || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return SetSyncMemops(ptr, *static_cast<const unsigned*>(value) != 0);
}

}  // namespace longwire::shim::hand
