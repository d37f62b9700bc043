// External memory. Semaphores and images of other interfaces cannot come from a host without a GPU.
#include "client-shim/entry/error_log.h"
#include "client-shim/memory/external_memory.h"
#include "longwire/shim_hand_written.h"

namespace longwire::shim::hand {

CUresult cuImportExternalMemory(CUexternalMemory* extMem_out,
                                const CUDA_EXTERNAL_MEMORY_HANDLE_DESC* memHandleDesc) {
  if (memHandleDesc == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUDA_EXTERNAL_MEMORY_HANDLE_DESC& told = *memHandleDesc;
  if ((told.flags & ~unsigned{CUDA_EXTERNAL_MEMORY_DEDICATED}) != 0 ||
      told.type < CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD ||
      told.type > CU_EXTERNAL_MEMORY_HANDLE_TYPE_DMABUF_FD) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (told.type != CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD) {
    LogError("cuImportExternalMemory: only memory by CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD");
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  return ImportExternal(told.handle.fd, told.size, extMem_out);
}

CUresult cuExternalMemoryGetMappedBuffer(CUdeviceptr* devPtr, CUexternalMemory extMem,
                                         const CUDA_EXTERNAL_MEMORY_BUFFER_DESC* bufferDesc) {
  if (bufferDesc == nullptr || bufferDesc->flags != 0) return CUDA_ERROR_INVALID_VALUE;
  uint64_t address = 0;
  CUresult result = MapExternal(extMem, bufferDesc->offset, bufferDesc->size, &address);
  if (result == CUDA_SUCCESS) *devPtr = address;
  return result;
}

CUresult cuDestroyExternalMemory(CUexternalMemory extMem) { return DestroyExternal(extMem); }

}  // namespace longwire::shim::hand
