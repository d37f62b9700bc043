// Memory handed on as descriptors over a unix socket: physical memory of the program's own mapping,
// which outlives the process that made it, and allocations of a pool.
#include <cuda.h>

#include <vector>

#include "ipc.h"

constexpr int kCount = 1 << 20;
constexpr size_t kBytes = kCount * sizeof(unsigned);

#define DRIVER(name, version)                                                                    \
  static decltype(&name) name##_() {                                                             \
    void* found = nullptr;                                                                       \
    cudaDriverEntryPointQueryResult result;                                                      \
    CHECK(cudaGetDriverEntryPointByVersion(#name, &found, version, cudaEnableDefault, &result)); \
    return reinterpret_cast<decltype(&name)>(found);                                             \
  }
DRIVER(cuMemCreate, 12000)
DRIVER(cuMemRelease, 12000)
DRIVER(cuMemAddressReserve, 12000)
DRIVER(cuMemMap, 12000)
DRIVER(cuMemUnmap, 12000)
DRIVER(cuMemSetAccess, 12000)
DRIVER(cuMemExportToShareableHandle, 12000)
DRIVER(cuMemImportFromShareableHandle, 12000)
DRIVER(cuMemGetAllocationPropertiesFromHandle, 12000)

static void Driver(CUresult found, const char* call, CUresult wanted = CUDA_SUCCESS) {
  EXPECT(found == wanted, "%s gave %d, not %d", call, found, wanted);
}
#define CU(call) Driver(call, #call)

__global__ void Fill(unsigned* values, unsigned seed) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  values[i] = i * 2654435761u + seed;
}

static void ExpectFill(const unsigned* device, unsigned seed, const char* what) {
  std::vector<unsigned> found(kCount);
  CHECK(cudaMemcpy(found.data(), device, kBytes, cudaMemcpyDeviceToHost));
  for (int i = 0; i < kCount; ++i) {
    EXPECT(found[i] == i * 2654435761u + seed, "%s: element %d is %u", what, i, found[i]);
  }
}

static CUmemAllocationProp Properties(CUmemAllocationHandleType type) {
  CUmemAllocationProp properties = {};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  properties.requestedHandleTypes = type;
  return properties;
}

static unsigned* Map(CUmemGenericAllocationHandle handle) {
  CUdeviceptr address = 0;
  CU(cuMemAddressReserve_()(&address, kBytes, 0, 0, 0));
  CU(cuMemMap_()(address, kBytes, 0, handle, 0));
  CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  CU(cuMemSetAccess_()(address, kBytes, &access, 1));
  return reinterpret_cast<unsigned*>(address);
}

static void* AsPointer(int descriptor) {
  return reinterpret_cast<void*>(static_cast<intptr_t>(descriptor));
}

// Makes memory, hands it on and ends.
static int Child(Peer peer) {
  CHECK(cudaFree(nullptr));
  constexpr auto kType = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  const CUmemAllocationProp properties = Properties(kType), plain = Properties({});
  CUmemGenericAllocationHandle handle, unshared;
  CU(cuMemCreate_()(&handle, kBytes, &properties, 0));
  CU(cuMemCreate_()(&unshared, kBytes, &plain, 0));
  unsigned* values = Map(handle);
  Fill<<<kCount / 256, 256>>>(values, 7);
  CHECK(cudaDeviceSynchronize());
  int descriptor = -1;
  Driver(cuMemExportToShareableHandle_()(&descriptor, unshared, kType, 0),
         "sharing what was not made for it", CUDA_ERROR_INVALID_VALUE);
  CU(cuMemExportToShareableHandle_()(&descriptor, handle, kType, 0));
  peer.SendDescriptor(descriptor);
  close(descriptor);
  peer.Receive<int>();  // it has imported the memory
  return 0;
}

static void CheckPhysical(Peer peer) {
  CHECK(cudaFree(nullptr));
  constexpr auto kType = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  const int descriptor = peer.ReceiveDescriptor();
  CUmemGenericAllocationHandle handle, again;
  CU(cuMemImportFromShareableHandle_()(&handle, AsPointer(descriptor), kType));
  CU(cuMemImportFromShareableHandle_()(&again, AsPointer(descriptor), kType));
  Driver(cuMemImportFromShareableHandle_()(&again, AsPointer(0), kType), "importing standard input",
         CUDA_ERROR_INVALID_VALUE);
  close(descriptor);
  CUmemAllocationProp properties;
  CU(cuMemGetAllocationPropertiesFromHandle_()(&properties, handle));
  EXPECT(properties.type == CU_MEM_ALLOCATION_TYPE_PINNED && properties.location.id == 0,
         "the type is %d, of device %d", properties.type, properties.location.id);
  unsigned* values = Map(handle);
  ExpectFill(values, 7, "while its maker lives");
  peer.Send(1);
  Join(peer);
  ExpectFill(values, 7, "after its maker's end");
  unsigned* twice = Map(again);
  Fill<<<kCount / 256, 256>>>(values, 8);
  CHECK(cudaDeviceSynchronize());
  ExpectFill(twice, 8, "the same memory mapped twice");
  for (unsigned* mapped : {values, twice}) {
    CU(cuMemUnmap_()(reinterpret_cast<CUdeviceptr>(mapped), kBytes));
  }
  CU(cuMemRelease_()(handle));
  CU(cuMemRelease_()(again));
}

static int PoolChild(Peer peer) {
  cudaMemPoolProps properties = {};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.handleTypes = cudaMemHandleTypePosixFileDescriptor;
  properties.location = {cudaMemLocationTypeDevice, 0};
  cudaMemPool_t pool;
  CHECK(cudaMemPoolCreate(&pool, &properties));
  unsigned* values;
  CHECK(cudaMallocFromPoolAsync(reinterpret_cast<void**>(&values), kBytes, pool, nullptr));
  Fill<<<kCount / 256, 256>>>(values, 9);
  CHECK(cudaDeviceSynchronize());
  int descriptor = -1;
  CHECK(cudaMemPoolExportToShareableHandle(&descriptor, pool, cudaMemHandleTypePosixFileDescriptor,
                                           0));
  peer.SendDescriptor(descriptor);
  cudaMemPoolPtrExportData data;
  CHECK(cudaMemPoolExportPointer(&data, values));
  peer.Send(data);
  peer.Receive<int>();  // it has freed its side
  ExpectFill(values, 10, "written by the other process");
  unsigned* unshared;
  CHECK(cudaMallocAsync(reinterpret_cast<void**>(&unshared), kBytes, nullptr));
  const cudaError_t refused = cudaMemPoolExportPointer(&data, unshared);
  EXPECT(refused == cudaErrorInvalidValue, "a pool that is not shared gave %d", refused);
  cudaIpcMemHandle_t handle;
  const cudaError_t legacy = cudaIpcGetMemHandle(&handle, values);
  EXPECT(legacy == cudaErrorInvalidValue, "a handle of a pool's memory gave %d", legacy);
  return 0;
}

static void CheckPool(Peer peer) {
  const int descriptor = peer.ReceiveDescriptor();
  cudaMemPool_t pool;
  CHECK(cudaFree(nullptr));
  CHECK(cudaMemPoolImportFromShareableHandle(&pool, AsPointer(descriptor),
                                             cudaMemHandleTypePosixFileDescriptor, 0));
  auto data = peer.Receive<cudaMemPoolPtrExportData>();
  unsigned *values, *none;
  CHECK(cudaMemPoolImportPointer(reinterpret_cast<void**>(&values), pool, &data));
  ExpectFill(values, 9, "of the other process's pool");
  Fill<<<kCount / 256, 256>>>(values, 10);
  const cudaError_t refused =
      cudaMallocFromPoolAsync(reinterpret_cast<void**>(&none), kBytes, pool, nullptr);
  EXPECT(refused == cudaErrorInvalidValue, "allocating in an imported pool gave %d", refused);
  cudaGetLastError();
  CHECK(cudaFreeAsync(values, nullptr));
  CHECK(cudaDeviceSynchronize());
  const cudaError_t freed = cudaMemset(values, 0, 4);
  EXPECT(freed == cudaErrorInvalidValue, "freed memory gave %d", freed);
  cudaGetLastError();
  peer.Send(1);
  Join(peer);
}

int main() {
  Peer pools = Fork();
  if (pools.child == 0) return PoolChild(pools);
  Peer physical = Fork();
  if (physical.child == 0) return Child(physical);
  CheckPhysical(physical);
  CheckPool(pools);
  return Pass("ipc_descriptors");
}
