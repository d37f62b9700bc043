// Stream-ordered allocation: pools are bookkeeping of this client, the memory is its own.
#include <algorithm>
#include <iterator>

#include "base/try.h"
#include "client-shim/context/properties.h"
#include "client-shim/memory/async_pool.h"
#include "client-shim/memory/peers.h"
#include "longwire/shim_hand_written.h"

namespace longwire::shim::hand {
namespace {

// Of the pools that every program has.
CUresult FindPlace(const CUmemLocation* location, CUmemAllocationType type, PoolPlace* place) {
  if (location == nullptr) return CUDA_ERROR_INVALID_VALUE;
  bool is_place = location->type >= CU_MEM_LOCATION_TYPE_NONE &&
                  location->type <= CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
  return is_place ? PlaceOf(*location, type, place) : CUDA_ERROR_NOT_SUPPORTED;
}

CUresult PoolOfLocation(const CUmemLocation* location, CUmemAllocationType type, bool is_default,
                        CUmemoryPool* pool) {
  PoolPlace place;
  if (pool == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = FindPlace(location, type, &place);
  return result == CUDA_SUCCESS ? PoolAt(place, is_default, pool) : result;
}

// What a new pool's memory shall be good for beside this program's own use.
CUresult CheckProperties(const CUmemPoolProps& properties, const PoolPlace& place) {
  constexpr unsigned kKnownHandles =
      CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR | CU_MEM_HANDLE_TYPE_FABRIC;
  auto handles = static_cast<unsigned>(properties.handleTypes);
  bool reserved = std::any_of(std::begin(properties.reserved), std::end(properties.reserved),
                              [](unsigned char byte) { return byte != 0; });
  if ((handles & ~kKnownHandles) != 0 || properties.win32SecurityAttributes != nullptr ||
      reserved) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (handles != 0 && place.kind != PoolKind::kDevice) return CUDA_ERROR_INVALID_VALUE;
  // What else `usage` may say is of no account.
  bool served = (handles & CU_MEM_HANDLE_TYPE_FABRIC) == 0 &&
                (properties.usage & CU_MEM_POOL_CREATE_USAGE_HW_DECOMPRESS) == 0;
  return served ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
}

uint64_t Bit(int device) { return device >= 0 && device < 64 ? uint64_t{1} << device : 0; }

// Other devices read and write, or do neither.
CUresult CheckPoolAccess(const Pool& pool, const CUmemAccessDesc& access) {
  bool of_device = pool.place.kind == PoolKind::kDevice;
  // The program itself reaches all memory but the devices'.
  if (access.location.type == CU_MEM_LOCATION_TYPE_HOST && !of_device) return CUDA_SUCCESS;
  if (access.location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_NOT_SUPPORTED;
  int device = access.location.id;
  if (FindDevice(device) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  if (device == pool.device || access.flags == CU_MEM_ACCESS_FLAGS_PROT_NONE) return CUDA_SUCCESS;
  if (access.flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE) return CUDA_ERROR_NOT_SUPPORTED;
  // Of another program's pool the device is not known yet: importing a piece of it says whether it
  // can be reached.
  if (pool.imported || !of_device) return CUDA_SUCCESS;
  int can = 0;
  CUresult result = CanAccessPeer(&can, device, pool.device);
  return result == CUDA_SUCCESS && can == 0 ? CUDA_ERROR_INVALID_DEVICE : result;
}

}  // namespace

CUresult cuMemGetDefaultMemPool(CUmemoryPool* pool_out, CUmemLocation* location,
                                CUmemAllocationType type) {
  return PoolOfLocation(location, type, true, pool_out);
}
CUresult cuMemGetMemPool(CUmemoryPool* pool, CUmemLocation* location, CUmemAllocationType type) {
  return PoolOfLocation(location, type, false, pool);
}
CUresult cuMemSetMemPool(CUmemLocation* location, CUmemAllocationType type, CUmemoryPool pool) {
  PoolPlace place;
  if (FindPool(pool) == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = FindPlace(location, type, &place);
  return result == CUDA_SUCCESS ? SetPoolAt(place, pool) : result;
}

CUresult cuMemPoolCreate(CUmemoryPool* pool, const CUmemPoolProps* poolProps) {
  if (poolProps == nullptr) return CUDA_ERROR_INVALID_VALUE;
  PoolPlace place;
  LONGWIRE_TRY(PlaceOf(poolProps->location, poolProps->allocType, &place));
  LONGWIRE_TRY(CheckProperties(*poolProps, place));
  return CreatePool(place, poolProps->handleTypes != 0, poolProps->maxSize, pool);
}
CUresult cuMemPoolDestroy(CUmemoryPool pool) { return DestroyPool(pool); }

CUresult cuMemPoolExportToShareableHandle(void* handle_out, CUmemoryPool pool,
                                          CUmemAllocationHandleType handleType,
                                          unsigned long long flags) {
  Pool* found = FindPool(pool);
  if (handle_out == nullptr || found == nullptr || !found->shareable || flags != 0 ||
      handleType != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  // The memory itself is shared piece by piece.
  SharedToken token = {OwnNumber(), found->table_index};
  return TokenToDescriptor(TokenKind::kPool, token, static_cast<int*>(handle_out));
}

CUresult cuMemPoolImportFromShareableHandle(CUmemoryPool* pool_out, void* handle,
                                            CUmemAllocationHandleType handleType,
                                            unsigned long long flags) {
  SharedToken token{};
  int descriptor = static_cast<int>(reinterpret_cast<intptr_t>(handle));
  if (pool_out == nullptr || flags != 0 || handleType != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (!TokenFromDescriptor(TokenKind::kPool, descriptor, &token)) return CUDA_ERROR_UNKNOWN;
  return ImportPool(token, pool_out);
}

CUresult cuMemPoolExportPointer(CUmemPoolPtrExportData* shareData_out, CUdeviceptr ptr) {
  Pool* pool = PoolOf(ptr);
  if (shareData_out == nullptr || pool == nullptr || !pool->shareable) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  SharedPiece piece;
  piece.kind = SharedPiece::kPoolMemory;
  piece.pool = pool->table_index;
  CUresult result = ShareAllocation(ptr, &piece);
  if (result == CUDA_SUCCESS) {
    Pack(piece, *reinterpret_cast<char(*)[64]>(shareData_out->reserved));
  }
  return result;
}

CUresult cuMemPoolImportPointer(CUdeviceptr* ptr_out, CUmemoryPool pool,
                                CUmemPoolPtrExportData* shareData) {
  Pool* found = FindPool(pool);
  SharedPiece piece;
  if (ptr_out == nullptr || shareData == nullptr || found == nullptr || !found->imported ||
      !Unpack(*reinterpret_cast<const char(*)[64]>(shareData->reserved), SharedPiece::kPoolMemory,
              &piece)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  uint64_t address = 0;
  CUresult result = ImportIntoPool(found, piece, &address);
  if (result == CUDA_SUCCESS) *ptr_out = address;
  return result;
}

CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t minBytesToKeep) {
  return TrimPool(pool, minBytesToKeep);
}
CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void* value) {
  return value == nullptr ? CUDA_ERROR_INVALID_VALUE : SetPoolAttribute(pool, attr, value);
}
CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void* value) {
  return value == nullptr ? CUDA_ERROR_INVALID_VALUE : GetPoolAttribute(pool, attr, value);
}

CUresult cuMemPoolSetAccess(CUmemoryPool handle, const CUmemAccessDesc* map, size_t count) {
  Pool* pool = FindPool(handle);
  if (pool == nullptr || (map == nullptr && count != 0)) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < count; ++i) {
    LONGWIRE_TRY(CheckPoolAccess(*pool, map[i]));
  }
  for (size_t i = 0; i < count; ++i) {
    int device = map[i].location.id;
    if (map[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE || device == pool->device) continue;
    if (map[i].flags == CU_MEM_ACCESS_FLAGS_PROT_NONE) {
      pool->accessors.fetch_and(~Bit(device));
    } else {
      pool->accessors.fetch_or(Bit(device));
      // What is imported all devices reach that can.
      if (!pool->imported && pool->place.kind == PoolKind::kDevice)
        AddPoolPeer(device, pool->device);
    }
  }
  return CUDA_SUCCESS;
}
CUresult cuMemPoolGetAccess(CUmemAccess_flags* flags, CUmemoryPool memPool,
                            CUmemLocation* location) {
  Pool* pool = FindPool(memPool);
  if (pool == nullptr || location == nullptr) return CUDA_ERROR_INVALID_VALUE;
  bool by_device = location->type == CU_MEM_LOCATION_TYPE_DEVICE;
  bool reaches = by_device && (location->id == pool->device ||
                               (pool->accessors.load() & Bit(location->id)) != 0);
  // The host's own pools are at first the host's. Of managed memory, which is everybody's, a pool
  // says nothing.
  if (pool->place.kind == PoolKind::kHost && !by_device) reaches = true;
  *flags = reaches ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_NONE;
  return CUDA_SUCCESS;
}

// Where there is no memory the address is null, which programs look at.
static CUresult Give(CUresult result, uint64_t address, CUdeviceptr* dptr) {
  if (result == CUDA_SUCCESS || result == CUDA_ERROR_OUT_OF_MEMORY) *dptr = address;
  return result;
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr* dptr, size_t bytesize, CUmemoryPool pool,
                                 CUstream hStream) {
  Pool* found = FindPool(pool);
  if (found == nullptr) return CUDA_ERROR_INVALID_VALUE;
  uint64_t address = 0;
  CUresult result = AllocateInStream(found, bytesize, hStream, &address);
  return Give(result, address, dptr);
}

CUresult cuMemAllocAsync(CUdeviceptr* dptr, size_t bytesize, CUstream hStream) {
  uint64_t address = 0;
  CUresult result = AllocateInStream(nullptr, bytesize, hStream, &address);
  return Give(result, address, dptr);
}

CUresult cuMemFreeAsync(CUdeviceptr dptr, CUstream hStream) { return FreeInStream(dptr, hStream); }

}  // namespace longwire::shim::hand
