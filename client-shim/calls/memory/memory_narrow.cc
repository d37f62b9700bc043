// The forms from before CUDA 3.2, whose addresses and sizes have 32 bits, where widening a number
// is not all there is to do. A result that does not fit is an error, never a part of it: an
// allocation beyond 4 GiB is CUDA_ERROR_OUT_OF_MEMORY, any other number CUDA_ERROR_INVALID_VALUE.
#include "client-shim/calls/memory/memory_narrow.h"

#include "longwire/shim_hand_written.h"

namespace longwire::shim::hand {
namespace {

// Memory that a program can name with 32 bits, or none.
CUresult KeepIfNarrow(CUresult result, CUdeviceptr address, uint64_t bytes, CUdeviceptr_v1* out) {
  if (result != CUDA_SUCCESS) return result;
  if (address + bytes > kNarrowEnd) {
    hand::cuMemFree_v2(address);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  *out = static_cast<CUdeviceptr_v1>(address);
  return CUDA_SUCCESS;
}

CUDA_MEMCPY2D Widen(const CUDA_MEMCPY2D_v1& from) {
  CUDA_MEMCPY2D to{};
  to.srcXInBytes = from.srcXInBytes;
  to.srcY = from.srcY;
  to.srcMemoryType = from.srcMemoryType;
  to.srcHost = from.srcHost;
  to.srcDevice = from.srcDevice;
  to.srcArray = from.srcArray;
  to.srcPitch = from.srcPitch;
  to.dstXInBytes = from.dstXInBytes;
  to.dstY = from.dstY;
  to.dstMemoryType = from.dstMemoryType;
  to.dstHost = from.dstHost;
  to.dstDevice = from.dstDevice;
  to.dstArray = from.dstArray;
  to.dstPitch = from.dstPitch;
  to.WidthInBytes = from.WidthInBytes;
  to.Height = from.Height;
  return to;
}

CUDA_MEMCPY3D Widen(const CUDA_MEMCPY3D_v1& from) {
  CUDA_MEMCPY3D to{};
  to.srcXInBytes = from.srcXInBytes;
  to.srcY = from.srcY;
  to.srcZ = from.srcZ;
  to.srcLOD = from.srcLOD;
  to.srcMemoryType = from.srcMemoryType;
  to.srcHost = from.srcHost;
  to.srcDevice = from.srcDevice;
  to.srcArray = from.srcArray;
  to.srcPitch = from.srcPitch;
  to.srcHeight = from.srcHeight;
  to.dstXInBytes = from.dstXInBytes;
  to.dstY = from.dstY;
  to.dstZ = from.dstZ;
  to.dstLOD = from.dstLOD;
  to.dstMemoryType = from.dstMemoryType;
  to.dstHost = from.dstHost;
  to.dstDevice = from.dstDevice;
  to.dstArray = from.dstArray;
  to.dstPitch = from.dstPitch;
  to.dstHeight = from.dstHeight;
  to.WidthInBytes = from.WidthInBytes;
  to.Height = from.Height;
  to.Depth = from.Depth;
  return to;
}

template <class Narrow, class Wide>
CUresult CopyWidened(CUresult (*copy)(const Wide*, CUstream), const Narrow* narrow,
                     CUstream stream) {
  if (narrow == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Wide wide = Widen(*narrow);
  return copy(&wide, stream);
}

}  // namespace

CUresult cuMemGetInfo(unsigned int* free, unsigned int* total) {
  size_t wide_free = 0, wide_total = 0;
  CUresult result = hand::cuMemGetInfo_v2(&wide_free, &wide_total);
  return GiveNarrow(result, wide_free, free, wide_total, total);
}

CUresult cuMemAlloc(CUdeviceptr_v1* dptr, unsigned int bytesize) {
  CUdeviceptr wide = 0;
  CUresult result = hand::cuMemAlloc_v2(&wide, bytesize);
  return KeepIfNarrow(result, wide, bytesize, dptr);
}

CUresult cuMemAllocPitch(CUdeviceptr_v1* dptr, unsigned int* pPitch, unsigned int WidthInBytes,
                         unsigned int Height, unsigned int ElementSizeBytes) {
  CUdeviceptr wide = 0;
  size_t pitch = 0;
  CUresult result = hand::cuMemAllocPitch_v2(&wide, &pitch, WidthInBytes, Height, ElementSizeBytes);
  result = KeepIfNarrow(result, wide, pitch * Height, dptr);
  return GiveNarrow(result, pitch, pPitch, pitch, nullptr);
}

CUresult cuMemGetAddressRange(CUdeviceptr_v1* pbase, unsigned int* psize, CUdeviceptr_v1 dptr) {
  CUdeviceptr base = 0;
  size_t size = 0;
  CUresult result = hand::cuMemGetAddressRange_v2(&base, &size, dptr);
  return GiveNarrow(result, base, pbase, size, psize);
}

CUresult cuMemHostGetDevicePointer(CUdeviceptr_v1* pdptr, void* p, unsigned int Flags) {
  CUdeviceptr wide = 0;
  CUresult result = hand::cuMemHostGetDevicePointer_v2(&wide, p, Flags);
  return GiveNarrow(result, wide, pdptr, wide, nullptr);
}

CUresult cuMemcpy2D(const CUDA_MEMCPY2D_v1* pCopy) {
  return CopyWidened(hand::cuMemcpy2D_v2, pCopy, CU_STREAM_LEGACY);
}

CUresult cuMemcpy2DUnaligned(const CUDA_MEMCPY2D_v1* pCopy) {
  return CopyWidened(hand::cuMemcpy2DUnaligned_v2, pCopy, CU_STREAM_LEGACY);
}

CUresult cuMemcpy2DAsync(const CUDA_MEMCPY2D_v1* pCopy, CUstream hStream) {
  return CopyWidened(hand::cuMemcpy2DAsync_v2, pCopy, hStream);
}

CUresult cuMemcpy3D(const CUDA_MEMCPY3D_v1* pCopy) {
  return CopyWidened(hand::cuMemcpy3D_v2, pCopy, CU_STREAM_LEGACY);
}

CUresult cuMemcpy3DAsync(const CUDA_MEMCPY3D_v1* pCopy, CUstream hStream) {
  return CopyWidened(hand::cuMemcpy3DAsync_v2, pCopy, hStream);
}

CUresult cuArrayCreate(CUarray* pHandle, const CUDA_ARRAY_DESCRIPTOR_v1* pAllocateArray) {
  const CUDA_ARRAY_DESCRIPTOR wide = {pAllocateArray->Width, pAllocateArray->Height,
                                      pAllocateArray->Format, pAllocateArray->NumChannels};
  return hand::cuArrayCreate_v2(pHandle, &wide);
}

CUresult cuArrayGetDescriptor(CUDA_ARRAY_DESCRIPTOR_v1* pArrayDescriptor, CUarray hArray) {
  CUDA_ARRAY_DESCRIPTOR wide{};
  CUresult result = forward::cuArrayGetDescriptor_v2(&wide, hArray);
  CUDA_ARRAY_DESCRIPTOR_v1 narrow{0, 0, wide.Format, wide.NumChannels};
  result = GiveNarrow(result, wide.Width, &narrow.Width, wide.Height, &narrow.Height);
  if (result == CUDA_SUCCESS) *pArrayDescriptor = narrow;
  return result;
}

CUresult cuArray3DCreate(CUarray* pHandle, const CUDA_ARRAY3D_DESCRIPTOR_v1* pAllocateArray) {
  const CUDA_ARRAY3D_DESCRIPTOR wide = {pAllocateArray->Width,       pAllocateArray->Height,
                                        pAllocateArray->Depth,       pAllocateArray->Format,
                                        pAllocateArray->NumChannels, pAllocateArray->Flags};
  return hand::cuArray3DCreate_v2(pHandle, &wide);
}

CUresult cuArray3DGetDescriptor(CUDA_ARRAY3D_DESCRIPTOR_v1* pArrayDescriptor, CUarray hArray) {
  CUDA_ARRAY3D_DESCRIPTOR wide{};
  CUresult result = forward::cuArray3DGetDescriptor_v2(&wide, hArray);
  CUDA_ARRAY3D_DESCRIPTOR_v1 narrow{0, 0, 0, wide.Format, wide.NumChannels, wide.Flags};
  result = GiveNarrow(result, wide.Width, &narrow.Width, wide.Height, &narrow.Height);
  result = GiveNarrow(result, wide.Depth, &narrow.Depth, wide.Depth, nullptr);
  if (result == CUDA_SUCCESS) *pArrayDescriptor = narrow;
  return result;
}

}  // namespace longwire::shim::hand
