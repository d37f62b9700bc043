// Pools of every kind and place: what is made, what is refused, what their memory is.
#include <unistd.h>

#include "check.h"

namespace conformance {
namespace {

// A call's code under a name that tells its arguments.
CUresult Show(const std::string& what, CUresult result) {
  const char* name = nullptr;
  if (cuGetErrorName(result, &name) != CUDA_SUCCESS) name = "?";
  std::printf("%s = %s\n", what.c_str(), name);
  return result;
}

std::string At(int type, int place) {
  return "(" + std::to_string(type) + " at " + std::to_string(place) + ")";
}

CUmemPoolProps Properties(int type, int place) {
  CUmemPoolProps properties = {};
  properties.allocType = static_cast<CUmemAllocationType>(type);
  properties.location = {static_cast<CUmemLocationType>(place), 0};
  return properties;
}

void Make(const std::string& what, const CUmemPoolProps& properties) {
  CUmemoryPool pool = nullptr;
  const CUresult made = Show("cuMemPoolCreate" + what, cuMemPoolCreate(&pool, &properties));
  if (made == CUDA_SUCCESS) cuMemPoolDestroy(pool);
}

// What the memory is. Where there is no such pool a device's stands for it.
void Use(int type, int place, CUstream stream) {
  CUmemPoolProps properties = Properties(type, place);
  const CUmemPoolProps other = Properties(CU_MEM_ALLOCATION_TYPE_PINNED, 1);
  CUmemoryPool pool = nullptr, of = nullptr;
  std::printf("use of %s\n", At(type, place).c_str());
  if (cuMemPoolCreate(&pool, &properties) != CUDA_SUCCESS) cuMemPoolCreate(&pool, &other);
  CUdeviceptr address = 0;
  unsigned managed = 9, kind = 9;
  CODE(cuMemAllocFromPoolAsync(&address, 100000, pool, stream));
  CODE(cuStreamSynchronize(stream));
  CODE(cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, address));
  CODE(cuPointerGetAttribute(&kind, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address));
  CODE(cuPointerGetAttribute(&of, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, address));
  VALUE(managed);
  VALUE(kind);
  VALUE(of == pool);
  for (const CUmemLocationType by : {CU_MEM_LOCATION_TYPE_DEVICE, CU_MEM_LOCATION_TYPE_HOST}) {
    CUmemAccess_flags access = CU_MEM_ACCESS_FLAGS_PROT_NONE;
    CUmemLocation location = {by, 0};
    CODE(cuMemPoolGetAccess(&access, pool, &location));
    VALUE(access);
  }
  CODE(cuMemFreeAsync(address, stream));
  CODE(cuStreamSynchronize(stream));
  CODE(cuMemFreeAsync(address, stream));
  CODE(cuMemPoolTrimTo(pool, 0));
  CODE(cuMemPoolDestroy(pool));
  CODE(cuMemPoolDestroy(pool));
}

void Kinds(CUstream stream) {
  for (int type : {0, 1, 2, 9}) {
    for (int place : {0, 1, 2, 3, 4, 99}) Make(At(type, place), Properties(type, place));
  }
  for (int handles : {1, 2, 4, 8, 64}) {
    CUmemPoolProps properties = Properties(CU_MEM_ALLOCATION_TYPE_PINNED, 1);
    properties.handleTypes = static_cast<CUmemAllocationHandleType>(handles);
    Make("(handles " + std::to_string(handles) + ")", properties);
  }
  CUmemPoolProps shared = Properties(CU_MEM_ALLOCATION_TYPE_PINNED, CU_MEM_LOCATION_TYPE_HOST);
  shared.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  Make("(the host, shared)", shared);
  CUmemPoolProps absent = Properties(CU_MEM_ALLOCATION_TYPE_PINNED, 1);
  absent.location.id = 99;
  Make("(no device)", absent);
  CUmemPoolProps usage = Properties(CU_MEM_ALLOCATION_TYPE_PINNED, 1);
  usage.usage = 0x80;
  Make("(unknown usage)", usage);
  CUmemPoolProps reserved = Properties(CU_MEM_ALLOCATION_TYPE_PINNED, 1);
  reserved.reserved[3] = 1;
  Make("(reserved bytes)", reserved);
  Use(CU_MEM_ALLOCATION_TYPE_PINNED, CU_MEM_LOCATION_TYPE_DEVICE, stream);
  Use(CU_MEM_ALLOCATION_TYPE_PINNED, CU_MEM_LOCATION_TYPE_HOST, stream);
  Use(CU_MEM_ALLOCATION_TYPE_MANAGED, CU_MEM_LOCATION_TYPE_DEVICE, stream);
}

void Limits(CUstream stream) {
  CUmemPoolProps properties = {};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  properties.maxSize = 64 << 20;
  CUmemoryPool pool = nullptr;
  CUdeviceptr one = 0, two = 0;
  CODE(cuMemPoolCreate(&pool, &properties));
  CODE(cuMemAllocFromPoolAsync(&one, 40 << 20, pool, stream));
  CODE(cuMemAllocFromPoolAsync(&two, 40 << 20, pool, stream));
  CODE(cuMemAllocFromPoolAsync(&two, size_t{1} << 50, pool, stream));
  CODE(cuMemAllocAsync(&two, size_t{1} << 50, stream));
  CODE(cuMemFreeAsync(one, stream));
  CODE(cuMemAllocFromPoolAsync(&one, 40 << 20, pool, stream));
  CODE(cuMemAllocFromPoolAsync(&two, 16, nullptr, stream));
  CODE(cuMemFreeAsync(0, stream));
  CODE(cuMemFreeAsync(one + 256, stream));
  CODE(cuMemPoolDestroy(pool));
  CODE(cuMemFreeAsync(one, stream));  // of a pool that is gone
  CODE(cuMemPoolCreate(nullptr, &properties));
  CODE(cuMemPoolCreate(&pool, nullptr));
}

void Defaults() {
  for (int type : {0, 1, 2}) {
    for (int place : {0, 1, 2, 3, 99}) {
      CUmemLocation location = {static_cast<CUmemLocationType>(place), 0};
      const auto of = static_cast<CUmemAllocationType>(type);
      const std::string at = At(type, place);
      CUmemoryPool standard = nullptr, current = nullptr;
      Show("cuMemGetDefaultMemPool" + at, cuMemGetDefaultMemPool(&standard, &location, of));
      Show("cuMemGetMemPool" + at, cuMemGetMemPool(&current, &location, of));
      VALUE(standard == current);
      Show("cuMemSetMemPool" + at, cuMemSetMemPool(&location, of, standard));
    }
  }
  CUmemLocation absent = {CU_MEM_LOCATION_TYPE_DEVICE, 99};
  CUmemoryPool pool = nullptr;
  CODE(cuMemGetDefaultMemPool(&pool, &absent, CU_MEM_ALLOCATION_TYPE_PINNED));
  CODE(cuMemGetMemPool(&pool, &absent, CU_MEM_ALLOCATION_TYPE_PINNED));
  CODE(cuMemSetMemPool(&absent, CU_MEM_ALLOCATION_TYPE_PINNED, nullptr));
  CODE(cuDeviceGetMemPool(&pool, 99));
  CODE(cuDeviceSetMemPool(99, nullptr));
  CODE(cuDeviceSetMemPool(0, nullptr));
}

void Shared(CUstream stream) {
  CUmemPoolProps properties = {};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  CUmemoryPool own = nullptr, imported = nullptr;
  CUdeviceptr address = 0;
  CUmemPoolPtrExportData data = {};
  int file = -1;
  constexpr auto kFile = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  CODE(cuMemPoolCreate(&own, &properties));
  CODE(cuMemPoolExportToShareableHandle(&file, own, kFile, 0));  // it is not to be shared
  CODE(cuMemAllocFromPoolAsync(&address, 4096, own, stream));
  CODE(cuMemPoolExportPointer(&data, address));
  CODE(cuMemPoolExportPointer(&data, 12345));
  CODE(cuMemPoolExportPointer(nullptr, address));
  CODE(cuMemFreeAsync(address, stream));
  CODE(cuMemPoolDestroy(own));
  CODE(cuMemPoolImportFromShareableHandle(&imported, reinterpret_cast<void*>(intptr_t{-1}), kFile,
                                          0));
  CODE(cuMemPoolImportPointer(&address, nullptr, &data));
  CODE(cuStreamSynchronize(stream));
}

}  // namespace

void PoolKinds() {
  InContext in;
  CUstream stream = nullptr;
  CODE(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  Kinds(stream);
  Limits(stream);
  Defaults();
  Shared(stream);
  CODE(cuStreamDestroy(stream));
}

}  // namespace conformance
