// Stream-ordered memory and its pools.
#include "check.h"

namespace conformance {

void Pools() {
  InContext in;
  CUmemoryPool standard = nullptr, current = nullptr, own = nullptr;
  CODE(cuDeviceGetDefaultMemPool(&standard, 0));
  CODE(cuDeviceGetMemPool(&current, 0));
  VALUE(standard == current);
  CODE(cuDeviceGetDefaultMemPool(&standard, 99));
  CODE(cuDeviceGetDefaultMemPool(&standard, 0));
  CUmemPoolProps properties = {};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  CODE(cuMemPoolCreate(&own, &properties));
  CODE(cuDeviceSetMemPool(0, own));
  CODE(cuDeviceGetMemPool(&current, 0));
  VALUE(current == own);
  for (int i = 1; i <= 8; ++i) {
    cuuint64_t value = 0;
    const CUresult result = cuMemPoolGetAttribute(own, static_cast<CUmemPool_attribute>(i), &value);
    std::printf("pool attribute %d = code %d value %llu\n", i, result,
                static_cast<unsigned long long>(value));
  }
  cuuint64_t threshold = 1 << 20, used = 0;
  int no = 0;
  CODE(cuMemPoolSetAttribute(own, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
  CODE(cuMemPoolGetAttribute(own, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &used));
  VALUE(used);
  CODE(cuMemPoolSetAttribute(own, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, &no));
  CODE(cuMemPoolSetAttribute(own, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &threshold));
  CODE(cuMemPoolSetAttribute(own, static_cast<CUmemPool_attribute>(77), &no));
  CUstream stream = nullptr;
  CODE(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CUdeviceptr one = 0, two = 0;
  CODE(cuMemAllocAsync(&one, 1 << 20, stream));
  CODE(cuMemAllocFromPoolAsync(&two, 1000, standard, stream));
  CODE(cuMemsetD8Async(one, 3, 1 << 20, stream));
  CODE(cuStreamSynchronize(stream));
  VALUE(DigestOf(one, 1 << 20));
  CODE(cuMemPoolGetAttribute(own, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
  VALUE(used);
  CODE(cuMemFreeAsync(one, stream));
  CODE(cuMemFreeAsync(two, stream));
  CODE(cuMemFreeAsync(two, stream));
  CODE(cuMemFreeAsync(12345, stream));
  CODE(cuMemFreeAsync(0, stream));
  CODE(cuMemAllocAsync(&one, 0, stream));
  CODE(cuMemAllocAsync(nullptr, 16, stream));
  CODE(cuStreamSynchronize(stream));
  CODE(cuMemPoolTrimTo(own, 0));
  CODE(cuMemPoolTrimTo(nullptr, 0));
  CUmemAccess_flags flags;
  CUmemLocation location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  CODE(cuMemPoolGetAccess(&flags, own, &location));
  VALUE(flags);
  CUmemAccessDesc access = {location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  CODE(cuMemPoolSetAccess(own, &access, 1));
  CODE(cuMemPoolDestroy(own));
  CODE(cuDeviceGetMemPool(&current, 0));
  VALUE(current == standard);
  CODE(cuMemPoolDestroy(standard));
  CODE(cuMemPoolDestroy(nullptr));
  CODE(cuStreamDestroy(stream));
}

}  // namespace conformance
