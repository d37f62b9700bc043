// Allocations, pinned memory, what pointers are.
#include <algorithm>

#include "base/try.h"
#include "client-shim/context/context.h"
#include "client-shim/context/properties.h"
#include "client-shim/copy/remap_copies.h"
#include "client-shim/entry/entry.h"
#include "client-shim/memory/async_pool.h"
#include "client-shim/memory/device_memory.h"
#include "client-shim/memory/external_memory.h"
#include "client-shim/memory/pointers.h"
#include "client-shim/mirror/host_exposure.h"
#include "client-shim/mirror/host_memory.h"
#include "client-shim/mirror/managed_memory.h"
#include "client-shim/session/session.h"
#include "client-shim/stream/capture.h"
#include "longwire/calls.h"
#include "longwire/shim_hand_written.h"

namespace longwire::shim::hand {

CUresult cuMemGetInfo_v2(size_t* free, size_t* total) {
  Context* context = nullptr;
  LONGWIRE_TRY(RequireHealthyContext(&context));
  calls::lwMemoryInfo ask;
  ask.device = FindDevice(context->device)->server_ordinal;
  auto answer = context->session->CallAndWait({context->number.load(), nullptr, 0}, ask);
  if (answer.code != CUDA_SUCCESS) return answer.code;
  uint64_t leased = MemoryOf(context->device)->FreeLeased();
  if (free != nullptr) *free = std::min(answer.reply.free + leased, answer.reply.total);
  if (total != nullptr) *total = answer.reply.total;
  return CUDA_SUCCESS;
}

CUresult cuMemAlloc_v2(CUdeviceptr* dptr, size_t bytesize) {
  if (bytesize == 0) return CUDA_ERROR_INVALID_VALUE;
  Context* context = nullptr;
  LONGWIRE_TRY(RequireHealthyContext(&context));
  uint64_t address = 0;
  CUresult result = MemoryOf(context->device)->Allocate(context, bytesize, &address);
  if (result == CUDA_SUCCESS) *dptr = address;
  return result;
}

CUresult cuMemAllocPitch_v2(CUdeviceptr* dptr, size_t* pPitch, size_t WidthInBytes, size_t Height,
                            unsigned int ElementSizeBytes) {
  constexpr size_t kPitch = 512;  // as devices since Fermi align rows
  if (ElementSizeBytes != 4 && ElementSizeBytes != 8 && ElementSizeBytes != 16) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (WidthInBytes == 0 || Height == 0) return CUDA_ERROR_INVALID_VALUE;
  size_t pitch = (WidthInBytes + kPitch - 1) / kPitch * kPitch, bytes = 0;
  if (pitch < WidthInBytes || __builtin_mul_overflow(pitch, Height, &bytes)) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  CUresult result = hand::cuMemAlloc_v2(dptr, bytes);
  if (result == CUDA_SUCCESS) *pPitch = pitch;
  return result;
}

// Pinned memory that a pool gave out: it is freed as other memory of pools.
static bool IsOfHostPool(CUdeviceptr address) {
  const Pool* pool = PoolOf(address);
  return pool != nullptr && pool->place.kind == PoolKind::kHost;
}

// The context that a free is of: where a thread has none, the memory's own.
static CUresult ContextOfFree(CUdeviceptr address, Context** context) {
  CUresult result = RequireContext(context);
  if (result != CUDA_ERROR_INVALID_CONTEXT) return result;
  DeviceRange range;
  if (IsOfHostPool(address)) return ContextOfHost(reinterpret_cast<void*>(address), context);
  if (!FindDeviceRange(address, &range)) return CUDA_ERROR_INVALID_VALUE;
  if (range.context == nullptr) return result;
  *context = range.context;
  return CUDA_SUCCESS;
}

CUresult cuMemFree_v2(CUdeviceptr dptr) {
  if (dptr == 0) return CUDA_SUCCESS;
  Context* context = nullptr;
  LONGWIRE_TRY(ContextOfFree(dptr, &context));
  CUresult result = TakeError(context);
  if (result != CUDA_SUCCESS) return result;
  if (IsImported(dptr)) {
    result = hand::cuCtxSynchronize();
    return result == CUDA_SUCCESS ? CloseImported(dptr) : result;
  }
  if (IsExternalBuffer(dptr)) {
    result = hand::cuCtxSynchronize();
    return result == CUDA_SUCCESS ? FreeExternalBuffer(dptr) : result;
  }
  ManagedRange managed;
  if (FindManaged(dptr, &managed)) {
    if (managed.address == dptr) Unaccount(dptr);
    return FreeManaged(dptr);
  }
  if (IsOfHostPool(dptr)) {
    Unaccount(dptr);
    return FreeHost(reinterpret_cast<void*>(dptr));
  }
  if (IsGraphMemory(dptr)) {
    result = hand::cuCtxSynchronize();  // what allocates it has been launched by then
    if (result == CUDA_SUCCESS) result = FreeInStream(dptr, CU_STREAM_LEGACY);
    return result == CUDA_SUCCESS ? hand::cuCtxSynchronize() : result;
  }
  Allocation allocation;
  if (!FindAllocation(dptr, &allocation) || allocation.address != dptr) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  Unaccount(dptr);
  if (FreeAfterCopy(dptr, nullptr)) return CUDA_SUCCESS;
  bool freed =
      MemoryOf(DeviceOfAddress(dptr))->Free(dptr, UnfinishedWorkOfAll(), mempool::Freed::kForAll);
  return freed ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

// What is answered where a context is current.
static CUresult OrNoContext(CUresult code) {
  return HasCurrentContext() ? code : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr* pbase, size_t* psize, CUdeviceptr dptr) {
  DeviceRange range;
  if (pbase == nullptr && psize == nullptr) {  // nothing is asked
    return OrNoContext(CUDA_SUCCESS);
  }
  if (!FindDeviceRange(dptr, &range)) return OrNoContext(CUDA_ERROR_NOT_FOUND);
  if (pbase != nullptr) *pbase = range.address;
  if (psize != nullptr) *psize = range.bytes;
  return CUDA_SUCCESS;
}

CUresult cuMemHostAlloc(void** pp, size_t bytesize, unsigned int Flags) {
  constexpr unsigned kKnown =
      CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
  if (pp == nullptr || (Flags & ~kKnown) != 0) return CUDA_ERROR_INVALID_VALUE;
  if (bytesize != 0) return AllocateHost(bytesize, Flags, pp);
  *pp = nullptr;  // nothing, and no error
  return CUDA_SUCCESS;
}

CUresult cuMemAllocHost_v2(void** pp, size_t bytesize) {
  return hand::cuMemHostAlloc(pp, bytesize, 0);
}

CUresult cuMemFreeHost(void* p) {
  bool pooled = IsOfHostPool(reinterpret_cast<CUdeviceptr>(p));
  return pooled ? CUDA_ERROR_INVALID_VALUE : FreeHost(p);
}

CUresult cuMemHostRegister_v2(void* p, size_t bytesize, unsigned int Flags) {
  return RegisterHost(p, bytesize, Flags);
}

CUresult cuMemHostUnregister(void* p) { return UnregisterHost(p); }

CUresult cuMemHostGetFlags(unsigned int* pFlags, void* p) {
  HostRange range;
  if (!FindHost(reinterpret_cast<uint64_t>(p), &range))
    return OrNoContext(CUDA_ERROR_INVALID_VALUE);
  *pFlags = range.flags;
  return CUDA_SUCCESS;
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr* pdptr, void* p, unsigned int Flags) {
  if (Flags != 0) return CUDA_ERROR_INVALID_VALUE;
  uint64_t address = 0;
  CUresult result = ExposeToProgram(reinterpret_cast<uint64_t>(p), &address);
  if (result == CUDA_SUCCESS) *pdptr = address;
  return result == CUDA_ERROR_INVALID_VALUE ? OrNoContext(result) : result;
}

CUresult cuMemAllocManaged(CUdeviceptr* dptr, size_t bytesize, unsigned int flags) {
  uint64_t address = 0;
  CUresult result = AllocateManaged(bytesize, flags, &address);
  if (result == CUDA_SUCCESS) *dptr = address;
  return result;
}

}  // namespace longwire::shim::hand
