// Copies and memsets, in all their shapes: each becomes one operation of a stream. The synchronous
// forms use the legacy default stream.
#include <cstring>

#include "softgpu/driver/memory/address_space.h"
#include "softgpu/driver/stream/run.h"
#include "softgpu/driver/stream/stream.h"

namespace softgpu {
namespace {

enum class Wait { kNever, kIfPageableTarget, kAlways };

// The contexts that a peer copy names; null: the stream's own.
struct Peers {
  CUcontext target = nullptr;
  CUcontext source = nullptr;
};

void* HostPointer(uint64_t address) { return reinterpret_cast<void*>(address); }

CUDA_MEMCPY3D Linear(CUmemorytype target_type, uint64_t target, CUmemorytype source_type,
                     uint64_t source, size_t bytes) {
  CUDA_MEMCPY3D copy = {};
  copy.srcMemoryType = source_type;
  copy.dstMemoryType = target_type;
  copy.srcHost = HostPointer(source);
  copy.dstHost = HostPointer(target);
  copy.srcDevice = source;
  copy.dstDevice = target;
  copy.WidthInBytes = bytes;
  copy.Height = copy.Depth = 1;
  return copy;
}

// A linear side, or an array and the byte in it.
struct Place {
  CUmemorytype type;
  uint64_t at;
  CUarray array = nullptr;
};

CUDA_MEMCPY3D Bytes(const Place& target, const Place& source, size_t bytes) {
  CUDA_MEMCPY3D copy = Linear(target.type, target.at, source.type, source.at, bytes);
  copy.srcArray = source.array;
  copy.dstArray = target.array;
  if (source.array != nullptr) copy.srcXInBytes = source.at;
  if (target.array != nullptr) copy.dstXInBytes = target.at;
  return copy;
}

CUDA_MEMCPY3D From2D(const CUDA_MEMCPY2D& p) {
  CUDA_MEMCPY3D copy = {};
  copy.srcXInBytes = p.srcXInBytes;
  copy.srcY = p.srcY;
  copy.srcMemoryType = p.srcMemoryType;
  copy.srcHost = p.srcHost;
  copy.srcDevice = p.srcDevice;
  copy.srcArray = p.srcArray;
  copy.srcPitch = p.srcPitch;
  copy.dstXInBytes = p.dstXInBytes;
  copy.dstY = p.dstY;
  copy.dstMemoryType = p.dstMemoryType;
  copy.dstHost = p.dstHost;
  copy.dstDevice = p.dstDevice;
  copy.dstArray = p.dstArray;
  copy.dstPitch = p.dstPitch;
  copy.WidthInBytes = p.WidthInBytes;
  copy.Height = p.Height;
  copy.Depth = 1;
  return copy;
}

CUDA_MEMCPY3D FromPeer(const CUDA_MEMCPY3D_PEER& p) {
  CUDA_MEMCPY3D copy = {};
  static_assert(offsetof(CUDA_MEMCPY3D, WidthInBytes) ==
                offsetof(CUDA_MEMCPY3D_PEER, WidthInBytes));
  memcpy(&copy, &p, sizeof copy);  // the peer form is the plain one with contexts in two gaps
  return copy;
}

// The bytes of a pageable source are taken at the call, as the driver stages them.
void Stage(CopyOperation* operation) {
  const CUDA_MEMCPY3D& c = operation->copy;
  auto staged = std::make_shared<std::vector<std::byte>>(c.WidthInBytes * c.Height * c.Depth);
  size_t pitch = c.srcPitch ? c.srcPitch : c.WidthInBytes;
  size_t slice = pitch * (c.srcHeight ? c.srcHeight : c.Height);
  auto* target = staged->data();
  for (size_t z = 0; z < c.Depth; ++z) {
    for (size_t y = 0; y < c.Height; ++y, target += c.WidthInBytes) {
      memcpy(target, HostPointer(SourceAddress(c) + z * slice + y * pitch), c.WidthInBytes);
    }
  }
  operation->staged = std::move(staged);
}

CUresult FindPeer(CUcontext handle, int* device) {
  Context* context;
  if (handle == nullptr) return CUDA_SUCCESS;
  LONGWIRE_TRY(ResolveContext(handle, &context));
  *device = context->device;
  return CUDA_SUCCESS;
}

CUresult FindPeers(const Peers& peers, CopyDevices* devices) {
  LONGWIRE_TRY(FindPeer(peers.source, &devices->source));
  return FindPeer(peers.target, &devices->target);
}

CUresult Copy(const CUDA_MEMCPY3D& copy, CUstream handle, Wait wait, const Peers* peers = nullptr) {
  Context* context;
  LONGWIRE_TRY(Enter(&context));
  auto stream = FindStream(*context, handle);
  if (!stream) return CUDA_ERROR_INVALID_HANDLE;
  CopyDevices devices{stream->context().device, stream->context().device};
  if (peers != nullptr) LONGWIRE_TRY(FindPeers(*peers, &devices));
  LONGWIRE_TRY(CheckCopy(copy, devices));
  if (copy.WidthInBytes == 0 || copy.Height == 0 || copy.Depth == 0) return CUDA_SUCCESS;
  CopyOperation operation{copy, devices, nullptr};
  bool pageable_source = IsPageable(SourceAddress(copy));
  bool pageable_target = IsPageable(TargetAddress(copy));
  bool capturing;
  {
    base::MutexLock lock(Driver::mutex);
    capturing = stream->capture != nullptr;
    if (capturing && peers != nullptr) stream->capture->invalidated = true;
  }
  if (capturing && (wait == Wait::kAlways || peers != nullptr)) {
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  if (!capturing && wait == Wait::kIfPageableTarget && pageable_source) Stage(&operation);
  CompletionRef done;
  LONGWIRE_TRY(Submit(*stream, std::move(operation), &done));
  if (!done || wait == Wait::kNever || (wait == Wait::kIfPageableTarget && !pageable_target)) {
    return CUDA_SUCCESS;
  }
  return WaitFor({&done, 1}, stream->context());
}

bool IsSynchronous(uint64_t address) {
  auto found = AddressSpace::Get().Find(address);
  return found && found->synchronous;
}

// Copies between device ranges do not hold up the host, unless it wants that.
Wait WaitBetween(uint64_t target, uint64_t source) {
  if (IsSynchronous(target) || IsSynchronous(source)) return Wait::kAlways;
  return InArena(target) && InArena(source) ? Wait::kNever : Wait::kAlways;
}

CUresult Fill(CUdeviceptr target, size_t pitch, unsigned value, unsigned unit, size_t width,
              size_t height, CUstream handle) {
  Context* context;
  LONGWIRE_TRY(Enter(&context));
  auto stream = FindStream(*context, handle);
  if (!stream) return CUDA_ERROR_INVALID_HANDLE;
  FillOperation operation{{target, pitch, value, unit, width, height}, stream->context().device};
  LONGWIRE_TRY(CheckFill(operation.fill, operation.device));
  return Submit(*stream, operation);
}

// The forms without a stream.
CUresult FillInOrder(CUdeviceptr target, size_t pitch, unsigned value, unsigned unit, size_t width,
                     size_t height) {
  LONGWIRE_TRY(Fill(target, pitch, value, unit, width, height, nullptr));
  return IsSynchronous(target) ? cuStreamSynchronize(nullptr) : CUDA_SUCCESS;
}

constexpr auto kHost = CU_MEMORYTYPE_HOST;
constexpr auto kDevice = CU_MEMORYTYPE_DEVICE;
constexpr auto kArray = CU_MEMORYTYPE_ARRAY;
constexpr auto kUnified = CU_MEMORYTYPE_UNIFIED;

uint64_t Address(const void* p) { return reinterpret_cast<uint64_t>(p); }

}  // namespace
}  // namespace softgpu

using namespace softgpu;

CUresult cuMemcpyHtoD(CUdeviceptr dst, const void* src, size_t n) {
  return Copy(Linear(kDevice, dst, kHost, Address(src), n), nullptr, Wait::kAlways);
}
CUresult cuMemcpyDtoH(void* dst, CUdeviceptr src, size_t n) {
  return Copy(Linear(kHost, Address(dst), kDevice, src, n), nullptr, Wait::kAlways);
}
CUresult cuMemcpyDtoD(CUdeviceptr dst, CUdeviceptr src, size_t n) {
  return Copy(Linear(kDevice, dst, kDevice, src, n), nullptr, WaitBetween(dst, src));
}
CUresult cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t n) {
  return Copy(Linear(kUnified, dst, kUnified, src, n), nullptr, WaitBetween(dst, src));
}
CUresult cuMemcpyPeer(CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src,
                      CUcontext src_context, size_t n) {
  Peers peers{dst_context, src_context};
  return Copy(Linear(kDevice, dst, kDevice, src, n), nullptr, Wait::kNever, &peers);
}
CUresult cuMemcpyHtoDAsync(CUdeviceptr dst, const void* src, size_t n, CUstream s) {
  return Copy(Linear(kDevice, dst, kHost, Address(src), n), s, Wait::kIfPageableTarget);
}
CUresult cuMemcpyDtoHAsync(void* dst, CUdeviceptr src, size_t n, CUstream s) {
  return Copy(Linear(kHost, Address(dst), kDevice, src, n), s, Wait::kIfPageableTarget);
}
CUresult cuMemcpyDtoDAsync(CUdeviceptr dst, CUdeviceptr src, size_t n, CUstream s) {
  return Copy(Linear(kDevice, dst, kDevice, src, n), s, Wait::kNever);
}
CUresult cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t n, CUstream s) {
  return Copy(Linear(kUnified, dst, kUnified, src, n), s, Wait::kIfPageableTarget);
}
CUresult cuMemcpyPeerAsync(CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src,
                           CUcontext src_context, size_t n, CUstream s) {
  Peers peers{dst_context, src_context};
  return Copy(Linear(kDevice, dst, kDevice, src, n), s, Wait::kNever, &peers);
}
CUresult cuMemcpyHtoA(CUarray dst, size_t offset, const void* src, size_t n) {
  return Copy(Bytes({kArray, offset, dst}, {kHost, Address(src)}, n), nullptr, Wait::kAlways);
}
CUresult cuMemcpyAtoH(void* dst, CUarray src, size_t offset, size_t n) {
  return Copy(Bytes({kHost, Address(dst)}, {kArray, offset, src}, n), nullptr, Wait::kAlways);
}
CUresult cuMemcpyDtoA(CUarray dst, size_t offset, CUdeviceptr src, size_t n) {
  return Copy(Bytes({kArray, offset, dst}, {kDevice, src}, n), nullptr, Wait::kNever);
}
CUresult cuMemcpyAtoD(CUdeviceptr dst, CUarray src, size_t offset, size_t n) {
  return Copy(Bytes({kDevice, dst}, {kArray, offset, src}, n), nullptr, Wait::kNever);
}
CUresult cuMemcpyAtoA(CUarray dst, size_t dst_offset, CUarray src, size_t src_offset, size_t n) {
  return Copy(Bytes({kArray, dst_offset, dst}, {kArray, src_offset, src}, n), nullptr,
              Wait::kNever);
}
CUresult cuMemcpyHtoAAsync(CUarray dst, size_t offset, const void* src, size_t n, CUstream s) {
  return Copy(Bytes({kArray, offset, dst}, {kHost, Address(src)}, n), s, Wait::kIfPageableTarget);
}
CUresult cuMemcpyAtoHAsync(void* dst, CUarray src, size_t offset, size_t n, CUstream s) {
  return Copy(Bytes({kHost, Address(dst)}, {kArray, offset, src}, n), s, Wait::kIfPageableTarget);
}
CUresult cuMemcpy2D(const CUDA_MEMCPY2D* p) {
  if (p == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return Copy(From2D(*p), nullptr, Wait::kAlways);
}
CUresult cuMemcpy2DUnaligned(const CUDA_MEMCPY2D* p) { return cuMemcpy2D(p); }
CUresult cuMemcpy2DAsync(const CUDA_MEMCPY2D* p, CUstream s) {
  if (p == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return Copy(From2D(*p), s, Wait::kIfPageableTarget);
}
CUresult cuMemcpy3D(const CUDA_MEMCPY3D* p) {
  if (p == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return Copy(*p, nullptr, Wait::kAlways);
}
CUresult cuMemcpy3DAsync(const CUDA_MEMCPY3D* p, CUstream s) {
  if (p == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return Copy(*p, s, Wait::kIfPageableTarget);
}
CUresult cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER* p) {
  if (p == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Peers peers{p->dstContext, p->srcContext};
  return Copy(FromPeer(*p), nullptr, Wait::kAlways, &peers);
}
CUresult cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER* p, CUstream s) {
  if (p == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Peers peers{p->dstContext, p->srcContext};
  return Copy(FromPeer(*p), s, Wait::kIfPageableTarget, &peers);
}

CUresult cuMemsetD8(CUdeviceptr d, unsigned char v, size_t n) {
  return FillInOrder(d, 0, v, 1, n, 1);
}
CUresult cuMemsetD16(CUdeviceptr d, unsigned short v, size_t n) {
  return FillInOrder(d, 0, v, 2, n, 1);
}
CUresult cuMemsetD32(CUdeviceptr d, unsigned int v, size_t n) {
  return FillInOrder(d, 0, v, 4, n, 1);
}
CUresult cuMemsetD8Async(CUdeviceptr d, unsigned char v, size_t n, CUstream s) {
  return Fill(d, 0, v, 1, n, 1, s);
}
CUresult cuMemsetD16Async(CUdeviceptr d, unsigned short v, size_t n, CUstream s) {
  return Fill(d, 0, v, 2, n, 1, s);
}
CUresult cuMemsetD32Async(CUdeviceptr d, unsigned int v, size_t n, CUstream s) {
  return Fill(d, 0, v, 4, n, 1, s);
}
CUresult cuMemsetD2D8(CUdeviceptr d, size_t pitch, unsigned char v, size_t w, size_t h) {
  return FillInOrder(d, pitch, v, 1, w, h);
}
CUresult cuMemsetD2D16(CUdeviceptr d, size_t pitch, unsigned short v, size_t w, size_t h) {
  return FillInOrder(d, pitch, v, 2, w, h);
}
CUresult cuMemsetD2D32(CUdeviceptr d, size_t pitch, unsigned int v, size_t w, size_t h) {
  return FillInOrder(d, pitch, v, 4, w, h);
}
CUresult cuMemsetD2D8Async(CUdeviceptr d, size_t pitch, unsigned char v, size_t w, size_t h,
                           CUstream s) {
  return Fill(d, pitch, v, 1, w, h, s);
}
CUresult cuMemsetD2D16Async(CUdeviceptr d, size_t pitch, unsigned short v, size_t w, size_t h,
                            CUstream s) {
  return Fill(d, pitch, v, 2, w, h, s);
}
CUresult cuMemsetD2D32Async(CUdeviceptr d, size_t pitch, unsigned int v, size_t w, size_t h,
                            CUstream s) {
  return Fill(d, pitch, v, 4, w, h, s);
}
