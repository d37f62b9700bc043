// Every form of copy and memset.
#include "base/try.h"
#include "client-shim/context/context.h"
#include "client-shim/copy/copies.h"
#include "longwire/shim_hand_written.h"

namespace longwire::shim {
namespace hand {
namespace {

constexpr Waits kSync = Waits::kSync;
constexpr Waits kAsync = Waits::kAsync;

// One side of the structs for 2D and 3D copies. False for a kind of memory that is none.
bool Side(CUmemorytype kind, const void* host, CUdeviceptr device, CUarray array, size_t x,
          size_t y, size_t z, size_t pitch, size_t height, CopySide* side) {
  switch (kind) {
    case CU_MEMORYTYPE_HOST:
      *side = CopySide::Host(host);
      break;
    case CU_MEMORYTYPE_DEVICE:
      *side = CopySide::Device(device);
      break;
    case CU_MEMORYTYPE_ARRAY:
      *side = CopySide::Array(array, 0);
      break;
    case CU_MEMORYTYPE_UNIFIED:
      *side = CopySide::Either(device);
      break;
    default:
      return false;
  }
  side->x_bytes = x;
  side->y = y;
  side->z = z;
  side->pitch = pitch;
  side->height = height;
  return true;
}

CUresult Copy2D(const CUDA_MEMCPY2D* copy, CUstream stream, Waits waits) {
  if (copy == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (copy->WidthInBytes == 0 || copy->Height == 0) return CUDA_SUCCESS;
  CopySide to, from;
  if (!Side(copy->srcMemoryType, copy->srcHost, copy->srcDevice, copy->srcArray, copy->srcXInBytes,
            copy->srcY, 0, copy->srcPitch, 0, &from) ||
      !Side(copy->dstMemoryType, copy->dstHost, copy->dstDevice, copy->dstArray, copy->dstXInBytes,
            copy->dstY, 0, copy->dstPitch, 0, &to)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return Copy(to, from, {copy->WidthInBytes, copy->Height, 1}, stream, waits);
}

template <class Struct>
bool IsNothing(const Struct& copy) {
  return copy.WidthInBytes == 0 || copy.Height == 0 || copy.Depth == 0;
}

// Of a copy of nothing the sides are not looked at.
template <class Struct>
CUresult Sides3D(const Struct* copy, CopySide* to, CopySide* from) {
  if (copy == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (IsNothing(*copy)) return CUDA_SUCCESS;
  // The level of a mipmapped array: of other memory the driver does not look at it.
  bool levels = (copy->srcLOD != 0 && copy->srcMemoryType == CU_MEMORYTYPE_ARRAY) ||
                (copy->dstLOD != 0 && copy->dstMemoryType == CU_MEMORYTYPE_ARRAY);
  if (levels) return CUDA_ERROR_INVALID_VALUE;
  bool known =
      Side(copy->srcMemoryType, copy->srcHost, copy->srcDevice, copy->srcArray, copy->srcXInBytes,
           copy->srcY, copy->srcZ, copy->srcPitch, copy->srcHeight, from) &&
      Side(copy->dstMemoryType, copy->dstHost, copy->dstDevice, copy->dstArray, copy->dstXInBytes,
           copy->dstY, copy->dstZ, copy->dstPitch, copy->dstHeight, to);
  return known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult Copy3D(const CUDA_MEMCPY3D* copy, CUstream stream, Waits waits) {
  CopySide to, from;
  LONGWIRE_TRY(Sides3D(copy, &to, &from));
  return Copy(to, from, {copy->WidthInBytes, copy->Height, copy->Depth}, stream, waits);
}

// The context that a peer copy names for one of its sides.
CUresult SetPeer(CUcontext handle, CopySide* side) {
  Context* context = Contexts().Find(reinterpret_cast<uint64_t>(handle));
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  side->device = context->device;
  return CUDA_SUCCESS;
}

CUresult CopyPeers(CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src, CUcontext src_context,
                   size_t bytes, CUstream stream, Waits waits) {
  CopySide to = CopySide::Either(dst), from = CopySide::Either(src);
  if (bytes == 0) return Copy(to, from, {0}, stream, waits, Peers::kYes);
  if (dst == 0 || src == 0) return CUDA_ERROR_INVALID_VALUE;
  LONGWIRE_TRY(SetPeer(dst_context, &to));
  LONGWIRE_TRY(SetPeer(src_context, &from));
  return Copy(to, from, {bytes}, stream, waits, Peers::kYes);
}

// A side of host memory needs no context.
CUresult Copy3DPeers(const CUDA_MEMCPY3D_PEER* copy, CUstream stream, Waits waits) {
  CopySide to, from;
  CUresult result = Sides3D(copy, &to, &from);
  if (result != CUDA_SUCCESS || IsNothing(*copy)) return result;
  if (copy->dstContext != nullptr) result = SetPeer(copy->dstContext, &to);
  if (result == CUDA_SUCCESS && copy->srcContext != nullptr) {
    result = SetPeer(copy->srcContext, &from);
  }
  if (result != CUDA_SUCCESS) return result;
  return Copy(to, from, {copy->WidthInBytes, copy->Height, copy->Depth}, stream, waits,
              Peers::kYes);
}

}  // namespace

CUresult cuMemcpyHtoD_v2(CUdeviceptr dst, const void* src, size_t bytes, CUstream stream) {
  return Copy(CopySide::Device(dst), CopySide::Host(src), {bytes}, stream, kSync);
}
CUresult cuMemcpyDtoH_v2(void* dst, CUdeviceptr src, size_t bytes, CUstream stream) {
  return Copy(CopySide::Host(dst), CopySide::Device(src), {bytes}, stream, kSync);
}
CUresult cuMemcpyDtoD_v2(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream) {
  return Copy(CopySide::Device(dst), CopySide::Device(src), {bytes}, stream, kSync);
}
CUresult cuMemcpyDtoA_v2(CUarray dst, size_t offset, CUdeviceptr src, size_t bytes,
                         CUstream stream) {
  return Copy(CopySide::Array(dst, offset), CopySide::Device(src), {bytes}, stream, kSync);
}
CUresult cuMemcpyAtoD_v2(CUdeviceptr dst, CUarray src, size_t offset, size_t bytes,
                         CUstream stream) {
  return Copy(CopySide::Device(dst), CopySide::Array(src, offset), {bytes}, stream, kSync);
}
CUresult cuMemcpyHtoA_v2(CUarray dst, size_t offset, const void* src, size_t bytes,
                         CUstream stream) {
  return Copy(CopySide::Array(dst, offset), CopySide::Host(src), {bytes}, stream, kSync);
}
CUresult cuMemcpyAtoH_v2(void* dst, CUarray src, size_t offset, size_t bytes, CUstream stream) {
  return Copy(CopySide::Host(dst), CopySide::Array(src, offset), {bytes}, stream, kSync);
}
CUresult cuMemcpyAtoA_v2(CUarray dst, size_t dst_offset, CUarray src, size_t src_offset,
                         size_t bytes, CUstream stream) {
  return Copy(CopySide::Array(dst, dst_offset), CopySide::Array(src, src_offset), {bytes}, stream,
              kSync);
}
CUresult cuMemcpyHtoAAsync_v2(CUarray dst, size_t offset, const void* src, size_t bytes,
                              CUstream stream) {
  return Copy(CopySide::Array(dst, offset), CopySide::Host(src), {bytes}, stream, kAsync);
}
CUresult cuMemcpyAtoHAsync_v2(void* dst, CUarray src, size_t offset, size_t bytes,
                              CUstream stream) {
  return Copy(CopySide::Host(dst), CopySide::Array(src, offset), {bytes}, stream, kAsync);
}
CUresult cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream) {
  return Copy(CopySide::Either(dst), CopySide::Either(src), {bytes}, stream, kSync);
}
CUresult cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream) {
  return Copy(CopySide::Either(dst), CopySide::Either(src), {bytes}, stream, kAsync);
}
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr dst, const void* src, size_t bytes, CUstream stream) {
  return Copy(CopySide::Device(dst), CopySide::Host(src), {bytes}, stream, kAsync);
}
CUresult cuMemcpyDtoHAsync_v2(void* dst, CUdeviceptr src, size_t bytes, CUstream stream) {
  return Copy(CopySide::Host(dst), CopySide::Device(src), {bytes}, stream, kAsync);
}
CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream) {
  return Copy(CopySide::Device(dst), CopySide::Device(src), {bytes}, stream, kAsync);
}

CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D* copy, CUstream stream) {
  return Copy2D(copy, stream, kSync);
}
CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D* copy, CUstream stream) {
  return Copy2D(copy, stream, kSync);
}
CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D* copy, CUstream stream) {
  return Copy2D(copy, stream, kAsync);
}
CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D* copy, CUstream stream) {
  return Copy3D(copy, stream, kSync);
}
CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D* copy, CUstream stream) {
  return Copy3D(copy, stream, kAsync);
}

CUresult cuMemcpyPeer(CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src,
                      CUcontext src_context, size_t bytes, CUstream stream) {
  return CopyPeers(dst, dst_context, src, src_context, bytes, stream, kSync);
}
CUresult cuMemcpyPeerAsync(CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src,
                           CUcontext src_context, size_t bytes, CUstream stream) {
  return CopyPeers(dst, dst_context, src, src_context, bytes, stream, kAsync);
}
CUresult cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER* copy, CUstream stream) {
  return Copy3DPeers(copy, stream, kSync);
}
CUresult cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER* copy, CUstream stream) {
  return Copy3DPeers(copy, stream, kAsync);
}

CUresult cuMemsetD8_v2(CUdeviceptr dst, unsigned char value, size_t count, CUstream stream) {
  return Memset(dst, 0, 1, value, count, 1, stream, kSync);
}
CUresult cuMemsetD16_v2(CUdeviceptr dst, unsigned short value, size_t count, CUstream stream) {
  return Memset(dst, 0, 2, value, count, 1, stream, kSync);
}
CUresult cuMemsetD32_v2(CUdeviceptr dst, unsigned int value, size_t count, CUstream stream) {
  return Memset(dst, 0, 4, value, count, 1, stream, kSync);
}
CUresult cuMemsetD2D8_v2(CUdeviceptr dst, size_t pitch, unsigned char value, size_t width,
                         size_t rows, CUstream stream) {
  return Memset(dst, pitch, 1, value, width, rows, stream, kSync);
}
CUresult cuMemsetD2D16_v2(CUdeviceptr dst, size_t pitch, unsigned short value, size_t width,
                          size_t rows, CUstream stream) {
  return Memset(dst, pitch, 2, value, width, rows, stream, kSync);
}
CUresult cuMemsetD2D32_v2(CUdeviceptr dst, size_t pitch, unsigned int value, size_t width,
                          size_t rows, CUstream stream) {
  return Memset(dst, pitch, 4, value, width, rows, stream, kSync);
}
CUresult cuMemsetD8Async(CUdeviceptr dst, unsigned char value, size_t count, CUstream stream) {
  return Memset(dst, 0, 1, value, count, 1, stream, kAsync);
}
CUresult cuMemsetD16Async(CUdeviceptr dst, unsigned short value, size_t count, CUstream stream) {
  return Memset(dst, 0, 2, value, count, 1, stream, kAsync);
}
CUresult cuMemsetD32Async(CUdeviceptr dst, unsigned int value, size_t count, CUstream stream) {
  return Memset(dst, 0, 4, value, count, 1, stream, kAsync);
}
CUresult cuMemsetD2D8Async(CUdeviceptr dst, size_t pitch, unsigned char value, size_t width,
                           size_t rows, CUstream stream) {
  return Memset(dst, pitch, 1, value, width, rows, stream, kAsync);
}
CUresult cuMemsetD2D16Async(CUdeviceptr dst, size_t pitch, unsigned short value, size_t width,
                            size_t rows, CUstream stream) {
  return Memset(dst, pitch, 2, value, width, rows, stream, kAsync);
}
CUresult cuMemsetD2D32Async(CUdeviceptr dst, size_t pitch, unsigned int value, size_t width,
                            size_t rows, CUstream stream) {
  return Memset(dst, pitch, 4, value, width, rows, stream, kAsync);
}

}  // namespace hand

CUresult SidesOf(const CUDA_MEMCPY3D& copy, CopySide* destination, CopySide* source) {
  return hand::Sides3D(&copy, destination, source);
}

}  // namespace longwire::shim
