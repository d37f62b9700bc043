// Plain device memory, pinned host memory, stream-ordered allocation, and what pointers are.
#include "softgpu/driver/graph/graph_memory.h"
#include "softgpu/driver/memory/address_space.h"
#include "softgpu/driver/memory/memory_pool.h"
#include "softgpu/driver/stream/capture.h"
#include "softgpu/driver/stream/run.h"
#include "softgpu/driver/stream/stream.h"

namespace softgpu {
namespace {

constexpr size_t kPitchAlignment = 512;  // bytes

bool IsCapturing(const Stream& stream) {
  base::MutexLock lock(Driver::mutex);
  return stream.capture != nullptr;
}

CUresult FreeInStream(Stream& stream, CUdeviceptr address, bool of_graph) {
  stream.WaitForRoom();
  if (!IsCapturing(stream)) LONGWIRE_TRY(CheckUnsafeInCapture());
  base::MutexLock lock(Driver::mutex);
  if (stream.capture) {  // no graph frees memory from outside graphs
    return of_graph ? AddCaptured(stream, MemoryFreeOperation{address}) : CUDA_ERROR_INVALID_VALUE;
  }
  if (of_graph) {
    auto memory = FreeGraphMemory(address);
    if (!memory) return CUDA_ERROR_INVALID_VALUE;
    Enqueue(stream, [memory](int) {});  // it stays until the stream is there
    return CUDA_SUCCESS;
  }
  Enqueue(stream, [address](int) { AddressSpace::Get().Free(address, MemoryKind::kDevice); });
  return CUDA_SUCCESS;
}

CUresult AllocateInCapture(CUdeviceptr* address, size_t bytes, Stream& stream, int device)
    LONGWIRE_REQUIRES(Driver::mutex) {
  CUDA_MEM_ALLOC_NODE_PARAMS params = {};
  params.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  params.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
  params.bytesize = bytes;
  auto memory = AllocateForGraph(*stream.capture->graph, stream.capture_nodes, params);
  if (!memory) return CUDA_ERROR_OUT_OF_MEMORY;
  *address = memory->params.dptr;
  return AddCaptured(stream, MemoryAllocOperation{std::move(memory)});
}

CUresult AllocateInStream(CUdeviceptr* address, size_t bytes, CUstream handle, int device) {
  Context* context;
  LONGWIRE_TRY(Enter(&context));
  auto stream = FindStream(*context, handle);
  if (!stream) return CUDA_ERROR_INVALID_HANDLE;
  if (address == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  if (device < 0) device = context->device;
  {
    base::MutexLock lock(Driver::mutex);
    if (stream->capture) return AllocateInCapture(address, bytes, *stream, device);
    LONGWIRE_TRY(CheckLegacyCapture(*stream));
  }
  LONGWIRE_TRY(CheckUnsafeInCapture());
  *address = AddressSpace::Get().Allocate(device, bytes, 0, context);
  return *address != 0 ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult AllocatePinned(void** pointer, size_t bytes, unsigned flags) {
  Context* context;
  LONGWIRE_TRY(EnterUnsafe(&context));
  if (pointer == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *pointer = nullptr;
  if (bytes == 0) return CUDA_SUCCESS;
  uint64_t address = AddressSpace::Get().AllocatePinned(bytes, flags, context);
  if (address == 0) return CUDA_ERROR_OUT_OF_MEMORY;
  *pointer = reinterpret_cast<void*>(address);
  return CUDA_SUCCESS;
}

template <class T>
void Put(void* data, T value) {
  *static_cast<T*>(data) = value;
}

// Writes the attribute's "no such pointer" value where `found` is null.
CUresult PointerAttribute(void* data, CUpointer_attribute attribute, CUdeviceptr address,
                          const Allocation* found) {
  bool host = found && found->kind != MemoryKind::kDevice;
  bool managed = found && AddressSpace::Get().IsManaged(address);
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
      if (found && found->context == nullptr) return CUDA_ERROR_INVALID_VALUE;
      Put<CUcontext>(data, found ? Handle(found->context) : nullptr);
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      Put<unsigned>(data, !found ? 0 : host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE);
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      Put<CUdeviceptr>(data, found ? address : 0);
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      Put<void*>(data, host || managed ? reinterpret_cast<void*>(address) : nullptr);
      return found && !host && !managed ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
      Put<unsigned char>(data, found && found->synchronous);
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
      Put<unsigned char>(data, 0);
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      Put<unsigned char>(data, managed);
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MAPPED:
      Put<unsigned char>(data, found != nullptr);
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
      Put<unsigned long long>(data, found ? found->id : 0);
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      Put<int>(data, found ? found->device : -2);  // CU_DEVICE_INVALID
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      Put<CUdeviceptr>(data, found ? found->address : 0);
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      Put<size_t>(data, found ? found->bytes : 0);
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
      Put<unsigned long long>(data, 0);
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
      Put<int>(data, found ? CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE
                           : CU_POINTER_ATTRIBUTE_ACCESS_FLAG_NONE);
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
      Put<CUmemoryPool>(data, nullptr);
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

}  // namespace
}  // namespace softgpu

using namespace softgpu;

CUresult cuMemGetInfo(size_t* free, size_t* total) {
  Context* context;
  LONGWIRE_TRY(Enter(&context));
  if (free != nullptr) *free = PhysicalMemory::Get().FreeBytes(context->device);
  if (total != nullptr) *total = Driver::Get().FindDevice(context->device)->total_bytes;
  return CUDA_SUCCESS;
}

CUresult cuMemAlloc(CUdeviceptr* address, size_t bytes) {
  Context* context;
  LONGWIRE_TRY(EnterUnsafe(&context));
  if (address == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  *address = AddressSpace::Get().Allocate(context->device, bytes, 0, context);
  return *address != 0 ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemAllocPitch(CUdeviceptr* address, size_t* pitch, size_t width, size_t height,
                         unsigned int element) {
  if (pitch == nullptr || width == 0 || height == 0 ||
      (element != 4 && element != 8 && element != 16)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  size_t bytes, row = (width + kPitchAlignment - 1) / kPitchAlignment * kPitchAlignment;
  if (row < width || __builtin_mul_overflow(row, height, &bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
  LONGWIRE_TRY(cuMemAlloc(address, bytes));
  *pitch = row;
  return CUDA_SUCCESS;
}

// Waits for the context's work, as the driver does in practice.
CUresult cuMemFree(CUdeviceptr address) {
  Context* context;
  LONGWIRE_TRY(EnterUnsafe());
  if (address == 0) return CUDA_SUCCESS;
  LONGWIRE_TRY(Enter(&context));
  auto found = AddressSpace::Get().Find(address);
  if (!found || found->address != address) return CUDA_ERROR_INVALID_VALUE;
  if (found->flags & kGraphOwned) {
    LONGWIRE_TRY(SynchronizeContext(*context));
    base::MutexLock lock(Driver::mutex);
    return FreeGraphMemory(address) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  }
  if (found->context == nullptr) return CUDA_ERROR_INVALID_VALUE;
  LONGWIRE_TRY(SynchronizeContext(*found->context));
  return AddressSpace::Get().Free(address, MemoryKind::kDevice);
}

CUresult cuMemGetAddressRange(CUdeviceptr* base, size_t* bytes, CUdeviceptr address) {
  Context* context;
  LONGWIRE_TRY(Enter(&context));
  auto found = AddressSpace::Get().Find(address);
  if (!found || found->kind == MemoryKind::kRegistered) return CUDA_ERROR_NOT_FOUND;
  if (base != nullptr) *base = found->address;
  if (bytes != nullptr) *bytes = found->bytes;
  return CUDA_SUCCESS;
}

CUresult cuMemAllocHost(void** pointer, size_t bytes) { return AllocatePinned(pointer, bytes, 0); }
CUresult cuMemHostAlloc(void** pointer, size_t bytes, unsigned int flags) {
  constexpr unsigned kKnown =
      CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
  if ((flags & ~kKnown) != 0) return CUDA_ERROR_INVALID_VALUE;
  return AllocatePinned(pointer, bytes, flags);
}

CUresult cuMemFreeHost(void* pointer) {
  LONGWIRE_TRY(EnterUnsafe());
  if (pointer == nullptr) return CUDA_SUCCESS;
  auto found = AddressSpace::Get().Find(reinterpret_cast<uint64_t>(pointer));
  if (!found || found->kind != MemoryKind::kPinned) return CUDA_ERROR_INVALID_VALUE;
  LONGWIRE_TRY(SynchronizeContext(*found->context));
  return AddressSpace::Get().Free(reinterpret_cast<uint64_t>(pointer), MemoryKind::kPinned);
}

CUresult cuMemHostRegister(void* pointer, size_t bytes, unsigned int flags) {
  Context* context;
  LONGWIRE_TRY(EnterUnsafe(&context));
  uint64_t address = reinterpret_cast<uint64_t>(pointer), end;
  constexpr unsigned kKnown =
      CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP | CU_MEMHOSTREGISTER_READ_ONLY;
  if (address == 0 || bytes == 0 || __builtin_add_overflow(address, bytes, &end) ||
      (flags & ~kKnown) != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return AddressSpace::Get().Register(address, bytes, flags, context);
}

CUresult cuMemHostUnregister(void* pointer) {
  LONGWIRE_TRY(EnterUnsafe());
  if (pointer == nullptr) return CUDA_ERROR_INVALID_VALUE;
  // Within a range, or in memory that is pinned otherwise, it is the pointer that is wrong.
  auto address = reinterpret_cast<uint64_t>(pointer);
  if (!AddressSpace::Get().Find(address)) return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
  return AddressSpace::Get().Free(address, MemoryKind::kRegistered);
}

CUresult cuMemHostGetDevicePointer(CUdeviceptr* device, void* pointer, unsigned int flags) {
  LONGWIRE_TRY(Enter());
  uint64_t address = reinterpret_cast<uint64_t>(pointer);
  auto found = AddressSpace::Get().Find(address);
  if (device == nullptr || flags != 0 || !found || found->kind == MemoryKind::kDevice) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  *device = address;
  return CUDA_SUCCESS;
}

CUresult cuMemHostGetFlags(unsigned int* flags, void* pointer) {
  LONGWIRE_TRY(Enter());
  auto found = AddressSpace::Get().Find(reinterpret_cast<uint64_t>(pointer));
  if (flags == nullptr || !found || found->kind != MemoryKind::kPinned) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  *flags = found->flags | CU_MEMHOSTALLOC_DEVICEMAP;
  return CUDA_SUCCESS;
}

CUresult cuMemAllocManaged(CUdeviceptr* address, size_t bytes, unsigned int flags) {
  Context* context;
  LONGWIRE_TRY(EnterUnsafe(&context));
  bool known = flags == CU_MEM_ATTACH_GLOBAL || flags == CU_MEM_ATTACH_HOST;
  if (address == nullptr || bytes == 0 || !known) return CUDA_ERROR_INVALID_VALUE;
  *address = AddressSpace::Get().AllocateManaged(bytes, context);
  return *address != 0 ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemAllocAsync(CUdeviceptr* address, size_t bytes, CUstream stream) {
  return AllocateInStream(address, bytes, stream, -1);
}
CUresult cuMemAllocFromPoolAsync(CUdeviceptr* address, size_t bytes, CUmemoryPool handle,
                                 CUstream stream) {
  LONGWIRE_TRY(Enter());
  auto pool = Driver::Get().pools.Find(handle);
  if (!pool) return CUDA_ERROR_INVALID_VALUE;
  return AllocateInStream(address, bytes, stream, pool->device);
}
CUresult cuMemFreeAsync(CUdeviceptr address, CUstream handle) {
  Context* context;
  LONGWIRE_TRY(Enter(&context));
  auto stream = FindStream(*context, handle);
  if (!stream) return CUDA_ERROR_INVALID_HANDLE;
  if (address == 0) return CUDA_SUCCESS;  // as the driver, which frees nothing
  auto found = AddressSpace::Get().Find(address);
  bool of_graph = found && (found->flags & kGraphOwned) != 0;
  if (!found || found->address != address || found->kind != MemoryKind::kDevice ||
      (found->context == nullptr && !of_graph)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return FreeInStream(*stream, address, of_graph);
}

CUresult cuPointerGetAttribute(void* data, CUpointer_attribute attribute, CUdeviceptr address) {
  LONGWIRE_TRY(Enter());
  if (data == nullptr) return CUDA_ERROR_INVALID_VALUE;
  auto found = AddressSpace::Get().Find(address);
  if (!found) return CUDA_ERROR_INVALID_VALUE;
  return PointerAttribute(data, attribute, address, &*found);
}

CUresult cuPointerSetAttribute(const void* value, CUpointer_attribute attribute,
                               CUdeviceptr address) {
  LONGWIRE_TRY(EnterUnsafe());
  if (value == nullptr || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS ||
      !AddressSpace::Get().SetSynchronous(address, *static_cast<const unsigned*>(value) != 0)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

// Unlike the single form this succeeds for any pointer.
CUresult cuPointerGetAttributes(unsigned int count, CUpointer_attribute* attributes, void** data,
                                CUdeviceptr address) {
  LONGWIRE_TRY(Enter());
  if (count == 0 || attributes == nullptr || data == nullptr) return CUDA_ERROR_INVALID_VALUE;
  auto found = AddressSpace::Get().Find(address);
  for (unsigned i = 0; i < count; ++i) {
    if (data[i] == nullptr) return CUDA_ERROR_INVALID_VALUE;
    PointerAttribute(data[i], attributes[i], address, found ? &*found : nullptr);
  }
  return CUDA_SUCCESS;
}
