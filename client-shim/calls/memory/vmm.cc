// Explicit management of addresses and physical memory.
#include "client-shim/memory/virtual_memory.h"
#include "longwire/shim_hand_written.h"

namespace longwire::shim::hand {
namespace {

// Served or not.
bool IsHandleType(CUmemAllocationHandleType type) {
  return type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR || type == CU_MEM_HANDLE_TYPE_WIN32 ||
         type == CU_MEM_HANDLE_TYPE_WIN32_KMT || type == CU_MEM_HANDLE_TYPE_FABRIC;
}

}  // namespace

CUresult cuMemAddressReserve(CUdeviceptr* ptr, size_t size, size_t alignment, CUdeviceptr addr,
                             unsigned long long flags) {
  if (flags != 0 || size == 0) return CUDA_ERROR_INVALID_VALUE;
  uint64_t address = 0;
  CUresult result = ReserveAddresses(size, alignment, addr, &address);
  if (result == CUDA_SUCCESS) *ptr = address;
  return result;
}

CUresult cuMemAddressFree(CUdeviceptr ptr, size_t size) { return FreeAddresses(ptr, size); }

CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, size_t size,
                     const CUmemAllocationProp* prop, unsigned long long flags) {
  if (flags != 0 || prop == nullptr) return CUDA_ERROR_INVALID_VALUE;
  uint64_t made = 0;
  CUresult result = CreatePhysical(size, *prop, &made);
  if (result == CUDA_SUCCESS) *handle = made;
  return result;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle) { return ReleasePhysical(handle); }

CUresult cuMemExportToShareableHandle(void* shareableHandle, CUmemGenericAllocationHandle handle,
                                      CUmemAllocationHandleType handleType,
                                      unsigned long long flags) {
  if (shareableHandle == nullptr || flags != 0 || !IsHandleType(handleType)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (handleType != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_NOT_SUPPORTED;
  return ExportPhysical(handle, static_cast<int*>(shareableHandle));
}

CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* handle, void* osHandle,
                                        CUmemAllocationHandleType shHandleType) {
  if (handle == nullptr || !IsHandleType(shHandleType)) return CUDA_ERROR_INVALID_VALUE;
  if (shHandleType != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_NOT_SUPPORTED;
  uint64_t made = 0;
  // The driver takes a descriptor as a pointer-sized number.
  CUresult result = ImportPhysical(static_cast<int>(reinterpret_cast<intptr_t>(osHandle)), &made);
  if (result == CUDA_SUCCESS) *handle = made;
  return result;
}

CUresult cuMemMap(CUdeviceptr ptr, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
                  unsigned long long flags) {
  if (flags != 0 || offset != 0) return CUDA_ERROR_INVALID_VALUE;
  return MapPhysical(ptr, size, handle);
}

CUresult cuMemUnmap(CUdeviceptr ptr, size_t size) { return UnmapAddresses(ptr, size); }

CUresult cuMemSetAccess(CUdeviceptr ptr, size_t size, const CUmemAccessDesc* desc, size_t count) {
  if (desc == nullptr && count != 0) return CUDA_ERROR_INVALID_VALUE;
  return SetAccess(ptr, size, desc, count);
}

CUresult cuMemGetAccess(unsigned long long* flags, const CUmemLocation* location, CUdeviceptr ptr) {
  if (location == nullptr || location->type == CU_MEM_LOCATION_TYPE_INVALID) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return GetAccess(ptr, *location, flags);
}

CUresult cuMemGetAllocationGranularity(size_t* granularity, const CUmemAllocationProp* prop,
                                       CUmemAllocationGranularity_flags option) {
  // Of host memory, too, which only cuMemCreate refuses: programs ask this first, and take an error
  // here for a broken driver.
  if (prop == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUmemAllocationProp asked = *prop;
  bool host = asked.location.type == CU_MEM_LOCATION_TYPE_HOST ||
              asked.location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA ||
              asked.location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
  if (host) asked.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  CUresult result = CheckProperties(asked);
  if (result == CUDA_SUCCESS) *granularity = PhysicalGranularity();
  return result;
}

CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp* prop,
                                                CUmemGenericAllocationHandle handle) {
  return PhysicalProperties(handle, prop);
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* handle, void* addr) {
  uint64_t found = 0;
  CUresult result = RetainPhysicalAt(reinterpret_cast<uint64_t>(addr), &found);
  if (result == CUDA_SUCCESS) *handle = found;
  return result;
}

}  // namespace longwire::shim::hand
