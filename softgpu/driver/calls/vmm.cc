// Virtual memory management: physical chunks, reservations, mappings, sharing by descriptor.
#include <fcntl.h>
#include <unistd.h>

#include "softgpu/driver/memory/address_space.h"

namespace softgpu {
namespace {

// A chunk's handle is counted: cuMemRetainAllocationHandle adds a reference.
struct ChunkHandles {
  struct Entry {
    std::shared_ptr<Chunk> chunk;
    int references = 0;
  };
  base::Mutex mutex{base::ranks::kSoftgpuChunkHandles};
  std::map<CUmemGenericAllocationHandle, Entry> entries LONGWIRE_GUARDED_BY(mutex);

  static ChunkHandles& Get() {
    static auto* handles = new ChunkHandles;
    return *handles;
  }
  CUmemGenericAllocationHandle Add(std::shared_ptr<Chunk> chunk) {
    auto handle = reinterpret_cast<CUmemGenericAllocationHandle>(chunk.get());
    base::MutexLock lock(mutex);
    auto& entry = entries[handle];
    entry.chunk = std::move(chunk);
    ++entry.references;
    return handle;
  }
  std::shared_ptr<Chunk> Find(CUmemGenericAllocationHandle handle) {
    base::MutexLock lock(mutex);
    auto entry = entries.find(handle);
    return entry == entries.end() ? nullptr : entry->second.chunk;
  }
  bool Release(CUmemGenericAllocationHandle handle) {
    std::shared_ptr<Chunk> last;  // given back after the lock is
    base::MutexLock lock(mutex);
    auto entry = entries.find(handle);
    if (entry == entries.end()) return false;
    if (--entry->second.references == 0) {
      last = std::move(entry->second.chunk);
      entries.erase(entry);
    }
    return true;
  }
};

CUresult CheckProperties(const CUmemAllocationProp* prop) {
  if (prop == nullptr || prop->type != CU_MEM_ALLOCATION_TYPE_PINNED) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE) {
    return Refuse("a chunk that is not in device memory");
  }
  if (Driver::Get().FindDevice(prop->location.id) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  unsigned known = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  if ((static_cast<unsigned>(prop->requestedHandleTypes) & ~known) != 0) {
    return Refuse("a handle type other than a file descriptor");
  }
  return CUDA_SUCCESS;
}

CUresult CheckLocation(const CUmemLocation& location) {
  if (location.type != CU_MEM_LOCATION_TYPE_DEVICE) {
    return Refuse("access to a mapping from elsewhere than a device");
  }
  return Driver::Get().FindDevice(location.id) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

bool IsWhole(uint64_t value) { return value % kChunkGranularity == 0; }

}  // namespace
}  // namespace softgpu

using namespace softgpu;

CUresult cuMemGetAllocationGranularity(size_t* granularity, const CUmemAllocationProp* prop,
                                       CUmemAllocationGranularity_flags) {
  LONGWIRE_TRY(Enter());
  if (granularity == nullptr) return CUDA_ERROR_INVALID_VALUE;
  LONGWIRE_TRY(CheckProperties(prop));
  *granularity = kChunkGranularity;
  return CUDA_SUCCESS;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, size_t bytes,
                     const CUmemAllocationProp* prop, unsigned long long flags) {
  LONGWIRE_TRY(Enter());
  if (handle == nullptr || flags != 0 || bytes == 0 || !IsWhole(bytes)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  LONGWIRE_TRY(CheckProperties(prop));
  auto chunk = PhysicalMemory::Get().Create(prop->location.id, bytes);
  if (!chunk) return CUDA_ERROR_OUT_OF_MEMORY;
  *handle = ChunkHandles::Get().Add(std::move(chunk));
  return CUDA_SUCCESS;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  LONGWIRE_TRY(Enter());
  return ChunkHandles::Get().Release(handle) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* handle, void* address) {
  LONGWIRE_TRY(Enter());
  auto chunk = AddressSpace::Get().FindChunk(reinterpret_cast<uint64_t>(address));
  if (handle == nullptr || !chunk) return CUDA_ERROR_INVALID_VALUE;
  *handle = ChunkHandles::Get().Add(std::move(chunk));
  return CUDA_SUCCESS;
}

CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp* prop,
                                                CUmemGenericAllocationHandle handle) {
  LONGWIRE_TRY(Enter());
  auto chunk = ChunkHandles::Get().Find(handle);
  if (prop == nullptr || !chunk) return CUDA_ERROR_INVALID_VALUE;
  *prop = {};
  prop->type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop->requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  prop->location = {CU_MEM_LOCATION_TYPE_DEVICE, chunk->device};
  return CUDA_SUCCESS;
}

CUresult cuMemExportToShareableHandle(void* out, CUmemGenericAllocationHandle handle,
                                      CUmemAllocationHandleType type, unsigned long long flags) {
  LONGWIRE_TRY(Enter());
  auto chunk = ChunkHandles::Get().Find(handle);
  if (out == nullptr || flags != 0 || !chunk) return CUDA_ERROR_INVALID_VALUE;
  if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return Refuse("this handle type");
  int fd = fcntl(chunk->fd, F_DUPFD_CLOEXEC, 0);
  if (fd < 0) return CUDA_ERROR_OPERATING_SYSTEM;
  *static_cast<int*>(out) = fd;
  return CUDA_SUCCESS;
}

CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* handle, void* os_handle,
                                        CUmemAllocationHandleType type) {
  LONGWIRE_TRY(Enter());
  if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return Refuse("this handle type");
  int fd = static_cast<int>(reinterpret_cast<intptr_t>(os_handle));
  auto chunk = PhysicalMemory::Get().Import(fd);
  if (!chunk) return CUDA_ERROR_INVALID_VALUE;
  *handle = ChunkHandles::Get().Add(std::move(chunk));
  return CUDA_SUCCESS;
}

CUresult cuMemAddressReserve(CUdeviceptr* address, size_t bytes, size_t alignment, CUdeviceptr hint,
                             unsigned long long flags) {
  LONGWIRE_TRY(Enter());
  if (address == nullptr || flags != 0 || bytes == 0 || !IsWhole(bytes) ||
      (alignment & (alignment - 1)) != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  alignment = std::max(alignment, kChunkGranularity);
  *address = AddressSpace::Get().Reserve(bytes, alignment, hint);
  return *address != 0 ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemAddressFree(CUdeviceptr address, size_t bytes) {
  LONGWIRE_TRY(Enter());
  return AddressSpace::Get().Unreserve(address, bytes);
}

CUresult cuMemMap(CUdeviceptr address, size_t bytes, size_t offset,
                  CUmemGenericAllocationHandle handle, unsigned long long flags) {
  LONGWIRE_TRY(Enter());
  auto chunk = ChunkHandles::Get().Find(handle);
  if (!chunk || offset != 0 || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  return AddressSpace::Get().Map(address, bytes, std::move(chunk));
}

CUresult cuMemUnmap(CUdeviceptr address, size_t bytes) {
  LONGWIRE_TRY(Enter());
  return AddressSpace::Get().Unmap(address, bytes);
}

CUresult cuMemSetAccess(CUdeviceptr address, size_t bytes, const CUmemAccessDesc* descriptors,
                        size_t count) {
  LONGWIRE_TRY(Enter());
  if (descriptors == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
  DeviceSet added = 0, removed = 0;
  for (size_t i = 0; i < count; ++i) {
    LONGWIRE_TRY(CheckLocation(descriptors[i].location));
    if (descriptors[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READ) {
      return Refuse("read-only access to a mapping");
    }
    bool readwrite = descriptors[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    (readwrite ? added : removed) |= OnlyDevice(descriptors[i].location.id);
  }
  return AddressSpace::Get().SetAccess(address, bytes, added, removed);
}

CUresult cuMemGetAccess(unsigned long long* flags, const CUmemLocation* location,
                        CUdeviceptr address) {
  LONGWIRE_TRY(Enter());
  if (flags == nullptr || location == nullptr) return CUDA_ERROR_INVALID_VALUE;
  LONGWIRE_TRY(CheckLocation(*location));
  auto access = AddressSpace::Get().AccessOf(address);
  if (!access) return CUDA_ERROR_INVALID_VALUE;
  bool readwrite = (*access & OnlyDevice(location->id)) != 0;
  *flags = readwrite ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_NONE;
  return CUDA_SUCCESS;
}
