// Memory and events of one program in another: handles of 64 bytes that any way between them may
// carry.
#include "base/try.h"
#include "client-shim/context/context.h"
#include "client-shim/memory/async_pool.h"
#include "client-shim/memory/opened_memory.h"
#include "client-shim/memory/sharing.h"
#include "client-shim/stream/shared_event.h"
#include "longwire/shim_hand_written.h"

namespace longwire::shim::hand {

CUresult cuIpcGetMemHandle(CUipcMemHandle* pHandle, CUdeviceptr dptr) {
  Context* context = nullptr;
  LONGWIRE_TRY(RequireHealthyContext(&context));
  // As natively: what comes from a pool is shared by the pool's own functions.
  if (pHandle == nullptr || PoolOf(dptr) != nullptr) return CUDA_ERROR_INVALID_VALUE;
  SharedPiece piece;
  CUresult result = ShareAllocation(dptr, &piece);
  if (result == CUDA_SUCCESS) Pack(piece, pHandle->reserved);
  return result;
}

namespace {

// How often one program may open a piece.
enum class Opens { kOnce, kCounted };

CUresult OpenMemory(CUdeviceptr* pdptr, const CUipcMemHandle& handle, unsigned int Flags,
                    Opens opens) {
  Context* context = nullptr;
  LONGWIRE_TRY(RequireHealthyContext(&context));
  SharedPiece piece;
  if (pdptr == nullptr || Flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS ||
      !Unpack(handle.reserved, SharedPiece::kMemory, &piece)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  // As natively: a program has its own memory already.
  if (piece.process == OwnNumber()) return CUDA_ERROR_INVALID_CONTEXT;
  if (opens == Opens::kOnce && IsOpen(piece)) return CUDA_ERROR_ALREADY_MAPPED;
  uint64_t address = 0;
  CUresult result = OpenShared(piece, context, &address);
  if (result == CUDA_SUCCESS) *pdptr = address;
  return result;
}

}  // namespace

CUresult cuIpcOpenMemHandle_v2(CUdeviceptr* pdptr, CUipcMemHandle handle, unsigned int Flags) {
  return OpenMemory(pdptr, handle, Flags, Opens::kCounted);
}

CUresult cuIpcOpenMemHandle(CUdeviceptr* pdptr, CUipcMemHandle handle, unsigned int Flags) {
  return OpenMemory(pdptr, handle, Flags, Opens::kOnce);
}

CUresult cuIpcCloseMemHandle(CUdeviceptr dptr) {
  Context* context = nullptr;
  LONGWIRE_TRY(RequireHealthyContext(&context));
  if (!IsOpenedPiece(dptr) || PoolOf(dptr) != nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = hand::cuCtxSynchronize();  // what runs may still use it
  return result == CUDA_SUCCESS ? CloseShared(dptr) : result;
}

CUresult cuIpcGetEventHandle(CUipcEventHandle* pHandle, CUevent event) {
  Event* found = FindEvent(event);
  if (found == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (pHandle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SharedPiece piece;
  CUresult result = ShareEvent(found, &piece);
  if (result == CUDA_SUCCESS) Pack(piece, pHandle->reserved);
  return result;
}

CUresult cuIpcOpenEventHandle(CUevent* phEvent, CUipcEventHandle handle) {
  SharedPiece piece;
  if (phEvent == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!Unpack(handle.reserved, SharedPiece::kEvent, &piece)) return CUDA_ERROR_MAP_FAILED;
  if (piece.process == OwnNumber()) return CUDA_ERROR_INVALID_CONTEXT;
  return NewSharedEvent(piece, phEvent);
}

}  // namespace longwire::shim::hand
