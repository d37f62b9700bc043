// What a program asks about the device, its kernels and their occupancy must be consistent.
#include <atomic>
#include <cstring>
#include <thread>

#include "check.h"

__global__ void Small(int* output) { output[threadIdx.x] = threadIdx.x; }

__global__ void __launch_bounds__(128) WithShared(int* output) {
  __shared__ int values[3000];
  values[threadIdx.x] = output[threadIdx.x];
  __syncthreads();
  output[threadIdx.x] = values[(threadIdx.x + 1) % blockDim.x];
}

static void CheckDevice() {
  int count = 0, driver = 0, runtime = 0, warp = 0, threads = 0, capability = 0;
  CHECK(cudaGetDeviceCount(&count));
  EXPECT(count >= 1, "%d devices", count);
  CHECK(cudaDriverGetVersion(&driver));
  CHECK(cudaRuntimeGetVersion(&runtime));
  EXPECT(driver >= 12000 && runtime >= 12000, "driver %d, runtime %d", driver, runtime);
  CHECK(cudaDeviceGetAttribute(&warp, cudaDevAttrWarpSize, 0));
  CHECK(cudaDeviceGetAttribute(&threads, cudaDevAttrMaxThreadsPerBlock, 0));
  CHECK(cudaDeviceGetAttribute(&capability, cudaDevAttrComputeCapabilityMajor, 0));
  cudaDeviceProp properties;
  CHECK(cudaGetDeviceProperties(&properties, 0));
  EXPECT(warp == 32 && properties.warpSize == 32, "warp size %d", warp);
  EXPECT(threads == 1024 && properties.maxThreadsPerBlock == 1024, "%d threads", threads);
  EXPECT(properties.major == capability && capability >= 7, "capability %d", properties.major);
  EXPECT(properties.name[0] != 0 && std::strlen(properties.name) < 256, "no name");
  EXPECT(properties.multiProcessorCount > 0, "no multiprocessors");
  size_t free_bytes = 0, total_bytes = 0;
  CHECK(cudaMemGetInfo(&free_bytes, &total_bytes));
  EXPECT(free_bytes > 0 && free_bytes <= total_bytes && total_bytes <= properties.totalGlobalMem,
         "%zu of %zu bytes free, device has %zu", free_bytes, total_bytes,
         properties.totalGlobalMem);
  int device = -1;
  CHECK(cudaGetDevice(&device));
  EXPECT(device == 0, "current device %d", device);
  char bus[32] = "";
  CHECK(cudaDeviceGetPCIBusId(bus, sizeof bus, 0));
  CHECK(cudaDeviceGetByPCIBusId(&device, bus));
  EXPECT(device == 0, "bus id %s is device %d", bus, device);
}

static void CheckKernels() {
  cudaFuncAttributes small, with_shared;
  CHECK(cudaFuncGetAttributes(&small, Small));
  CHECK(cudaFuncGetAttributes(&with_shared, WithShared));
  EXPECT(small.sharedSizeBytes == 0, "Small uses %zu bytes", small.sharedSizeBytes);
  EXPECT(with_shared.sharedSizeBytes >= 12000 && with_shared.sharedSizeBytes < 13100,
         "WithShared uses %zu bytes", with_shared.sharedSizeBytes);
  EXPECT(small.maxThreadsPerBlock == 1024, "Small: %d threads", small.maxThreadsPerBlock);
  EXPECT(with_shared.maxThreadsPerBlock == 128, "WithShared: %d threads",
         with_shared.maxThreadsPerBlock);
  WithShared<<<1, 129>>>(nullptr);
  cudaError_t more = cudaGetLastError();
  EXPECT(more == cudaErrorInvalidValue, "more threads than the launch bounds: %d", more);
  EXPECT(small.numRegs > 0 && small.ptxVersion >= 50, "registers %d, PTX %d", small.numRegs,
         small.ptxVersion);
}

static void CheckOccupancy() {
  int few = 0, many = 0, starved = 0, grid = 0, block = 0;
  CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&many, Small, 64, 0));
  CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&few, Small, 1024, 0));
  CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&starved, WithShared, 128, 30000));
  EXPECT(few >= 1 && few <= 2, "%d blocks of 1,024 threads", few);
  EXPECT(many > few && many <= 32, "%d blocks of 64 threads", many);
  EXPECT(starved >= 1 && starved < many, "%d blocks of 42,000 bytes", starved);
  CHECK(cudaOccupancyMaxPotentialBlockSize(&grid, &block, Small, 0, 0));
  EXPECT(grid > 0 && block > 0 && block <= 1024 && block % 32 == 0, "grid %d, block %d", grid,
         block);
  CHECK(cudaFuncSetAttribute(Small, cudaFuncAttributeMaxDynamicSharedMemorySize, 40000));
  CHECK(cudaFuncSetCacheConfig(Small, cudaFuncCachePreferShared));
  cudaFuncAttributes small;
  CHECK(cudaFuncGetAttributes(&small, Small));
  EXPECT(small.maxDynamicSharedSizeBytes == 40000, "dynamic shared limit is %d",
         small.maxDynamicSharedSizeBytes);
}

__global__ void WithRoom(int* output, int last) {
  extern __shared__ int room[];
  room[last] = 7;
  *output = room[last];
}

// What is set for a later launch is none of an earlier one's, which may still wait.
static void CheckLaunchesThatWait() {
  constexpr int kRoom = 60000;
  std::atomic<bool> go{false};
  cudaStream_t stream;
  int* output = nullptr;
  CHECK(cudaMalloc(&output, sizeof(int)));
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  CHECK(cudaFuncSetAttribute(WithRoom, cudaFuncAttributeMaxDynamicSharedMemorySize, kRoom));
  CHECK(cudaLaunchHostFunc(
      stream,
      [](void* flag) {
        while (!static_cast<std::atomic<bool>*>(flag)->load()) std::this_thread::yield();
      },
      &go));
  WithRoom<<<1, 1, kRoom, stream>>>(output, kRoom / 4 - 1);
  CHECK(cudaGetLastError());
  CHECK(cudaFuncSetAttribute(WithRoom, cudaFuncAttributeMaxDynamicSharedMemorySize, 1024));
  cudaFuncAttributes attributes{};
  CHECK(cudaFuncGetAttributes(&attributes, WithRoom));
  EXPECT(attributes.maxDynamicSharedSizeBytes == 1024, "%d", attributes.maxDynamicSharedSizeBytes);
  go = true;
  CHECK(cudaStreamSynchronize(stream));
  int value = 0;
  CHECK(cudaMemcpy(&value, output, sizeof(value), cudaMemcpyDeviceToHost));
  EXPECT(value == 7, "the launch wrote %d", value);
  CHECK(cudaStreamDestroy(stream));
  CHECK(cudaFree(output));
}

int main() {
  CheckDevice();
  CheckKernels();
  CheckOccupancy();
  CheckLaunchesThatWait();
  return Pass("occupancy_attributes");
}
