// Pools of managed and of pinned host memory: what they give out is what they say, both sides use
// it, it goes in the stream's order; what no pool is made of is refused when it is made.
#include <cuda.h>

#include <vector>

#include "check.h"

#define CHECK_DRIVER(call)                                                 \
  do {                                                                     \
    const CUresult driver_code = (call);                                   \
    EXPECT(driver_code == CUDA_SUCCESS, "%s gave %d", #call, driver_code); \
  } while (false)

__global__ void AddOne(int* values, int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) values[i] += 1;
}

static constexpr int kCount = 100000;

static CUmemPoolProps Properties(CUmemAllocationType type, CUmemLocationType place) {
  CUmemPoolProps properties = {};
  properties.allocType = type;
  properties.location.type = place;
  return properties;
}

static unsigned Attribute(CUpointer_attribute attribute, CUdeviceptr address) {
  unsigned value = 99;
  CHECK_DRIVER(cuPointerGetAttribute(&value, attribute, address));
  return value;
}

// Both sides write, in turns; freed and asked for again while the stream is held up.
static void Use(CUmemoryPool pool, CUstream stream, bool managed) {
  CUdeviceptr address = 0;
  CUmemoryPool of = nullptr;
  for (int round = 0; round < 3; ++round) {
    CHECK_DRIVER(cuMemAllocFromPoolAsync(&address, kCount * sizeof(int), pool, stream));
    CHECK_DRIVER(cuStreamSynchronize(stream));
    EXPECT(Attribute(CU_POINTER_ATTRIBUTE_IS_MANAGED, address) == (managed ? 1u : 0u), "managed");
    EXPECT(Attribute(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address) ==
               (managed ? unsigned{CU_MEMORYTYPE_DEVICE} : unsigned{CU_MEMORYTYPE_HOST}),
           "type");
    CHECK_DRIVER(cuPointerGetAttribute(&of, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, address));
    EXPECT(of == pool, "it is of another pool");
    int* values = reinterpret_cast<int*>(address);
    for (int i = 0; i < kCount; ++i) values[i] = 10 * i + round;
    AddOne<<<(kCount + 255) / 256, 256, 0, stream>>>(values, kCount);
    CHECK(cudaGetLastError());
    std::vector<int> copied(kCount);
    const auto to = reinterpret_cast<CUdeviceptr>(copied.data());
    CHECK_DRIVER(cuMemcpyAsync(to, address, kCount * sizeof(int), stream));
    CHECK_DRIVER(cuMemFreeAsync(address, stream));
    CHECK_DRIVER(cuStreamSynchronize(stream));
    for (int i = 0; i < kCount; ++i) {
      EXPECT(copied[i] == 10 * i + round + 1, "element %d is %d", i, copied[i]);
    }
  }
  EXPECT(cuMemFreeAsync(address, stream) != CUDA_SUCCESS, "freed twice");
}

static void FreeBehindWork(CUmemoryPool pool, CUstream stream) {
  CUdeviceptr flag = 0;
  CHECK_DRIVER(cuMemAlloc(&flag, sizeof(unsigned)));
  CHECK_DRIVER(cuMemsetD32(flag, 0, 1));
  CHECK(cudaDeviceSynchronize());
  CUdeviceptr address = 0, next = 0;
  CHECK_DRIVER(cuMemAllocFromPoolAsync(&address, kCount * sizeof(int), pool, stream));
  int* values = reinterpret_cast<int*>(address);
  for (int i = 0; i < kCount; ++i) values[i] = i;
  CHECK_DRIVER(cuStreamWaitValue32(stream, flag, 1, CU_STREAM_WAIT_VALUE_GEQ));
  AddOne<<<(kCount + 255) / 256, 256, 0, stream>>>(values, kCount);
  std::vector<int> copied(kCount);
  CHECK(cudaHostRegister(copied.data(), kCount * sizeof(int), 0));
  const auto to = reinterpret_cast<CUdeviceptr>(copied.data());
  CHECK_DRIVER(cuMemcpyAsync(to, address, kCount * sizeof(int), stream));
  // Neither of the two waits, and the next one is not where the first is still used.
  CHECK_DRIVER(cuMemFreeAsync(address, stream));
  CUstream other = nullptr;
  CHECK_DRIVER(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
  CHECK_DRIVER(cuMemAllocFromPoolAsync(&next, kCount * sizeof(int), pool, other));
  std::memset(reinterpret_cast<void*>(next), 0, kCount * sizeof(int));
  CHECK_DRIVER(cuStreamWriteValue32(other, flag, 1, 0));
  CHECK_DRIVER(cuStreamSynchronize(stream));
  for (int i = 0; i < kCount; ++i) EXPECT(copied[i] == i + 1, "element %d is %d", i, copied[i]);
  CHECK(cudaHostUnregister(copied.data()));
  CHECK_DRIVER(cuMemFree(next));
  CHECK_DRIVER(cuStreamDestroy(other));
  CHECK_DRIVER(cuMemFree(flag));
}

static void Refused() {
  CUmemoryPool pool = nullptr;
  CUmemPoolProps none = Properties(CU_MEM_ALLOCATION_TYPE_INVALID, CU_MEM_LOCATION_TYPE_DEVICE);
  EXPECT(cuMemPoolCreate(&pool, &none) == CUDA_ERROR_INVALID_VALUE, "a pool of nothing");
  CUmemPoolProps nowhere = Properties(CU_MEM_ALLOCATION_TYPE_PINNED, CU_MEM_LOCATION_TYPE_NONE);
  EXPECT(cuMemPoolCreate(&pool, &nowhere) == CUDA_ERROR_INVALID_VALUE, "a pool of nowhere");
  CUmemPoolProps current =
      Properties(CU_MEM_ALLOCATION_TYPE_PINNED, CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT);
  EXPECT(cuMemPoolCreate(&pool, &current) == CUDA_ERROR_INVALID_VALUE, "the current node");
  CUmemPoolProps shared = Properties(CU_MEM_ALLOCATION_TYPE_PINNED, CU_MEM_LOCATION_TYPE_HOST);
  shared.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  EXPECT(cuMemPoolCreate(&pool, &shared) == CUDA_ERROR_INVALID_VALUE, "a shared pool of the host");
  CUmemPoolProps absent = Properties(CU_MEM_ALLOCATION_TYPE_PINNED, CU_MEM_LOCATION_TYPE_DEVICE);
  absent.location.id = 77;
  EXPECT(cuMemPoolCreate(&pool, &absent) == CUDA_ERROR_INVALID_VALUE, "a device that is not there");
  // Each attribute means what it says.
  int numa = 0;
  CHECK_DRIVER(
      cuDeviceGetAttribute(&numa, CU_DEVICE_ATTRIBUTE_HOST_NUMA_MEMORY_POOLS_SUPPORTED, 0));
  CUmemPoolProps node = Properties(CU_MEM_ALLOCATION_TYPE_PINNED, CU_MEM_LOCATION_TYPE_HOST_NUMA);
  const CUresult made = cuMemPoolCreate(&pool, &node);
  EXPECT((made == CUDA_SUCCESS) == (numa != 0), "a node's pool: %d", made);
  if (made == CUDA_SUCCESS) CHECK_DRIVER(cuMemPoolDestroy(pool));
}

int main() {
  CHECK(cudaFree(nullptr));
  CUstream stream = nullptr;
  CHECK_DRIVER(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  const CUmemLocationType places[] = {CU_MEM_LOCATION_TYPE_DEVICE, CU_MEM_LOCATION_TYPE_HOST,
                                      CU_MEM_LOCATION_TYPE_NONE};
  for (CUmemLocationType place : places) {
    CUmemPoolProps properties = Properties(CU_MEM_ALLOCATION_TYPE_MANAGED, place);
    CUmemoryPool pool = nullptr;
    if (cuMemPoolCreate(&pool, &properties) == CUDA_ERROR_NOT_SUPPORTED) continue;
    EXPECT(pool != nullptr, "no pool of managed memory");
    Use(pool, stream, true);
    CHECK_DRIVER(cuMemPoolDestroy(pool));
  }
  CUmemPoolProps host = Properties(CU_MEM_ALLOCATION_TYPE_PINNED, CU_MEM_LOCATION_TYPE_HOST);
  CUmemoryPool pool = nullptr;
  if (cuMemPoolCreate(&pool, &host) == CUDA_SUCCESS) {
    CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CHECK_DRIVER(cuMemPoolSetAccess(pool, &access, 1));
    Use(pool, stream, false);
    FreeBehindWork(pool, stream);
    CHECK_DRIVER(cuMemPoolDestroy(pool));
  }
  Refused();
  return Pass("pool_kinds");
}
