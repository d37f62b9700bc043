// One thread that does for two devices what NCCL does for all devices of a process: everything of
// both is set up in turns, with the other device current now and then; kernels of both run at once,
// wait for each other and read each other's memory. What they work with stands in a structure in
// device memory: pointers to memory of both devices, and to pinned memory that nothing else names.
#include <cuda.h>

#include <thread>
#include <vector>

#include "check.h"

constexpr int kCount = 1 << 12, kBlock = 128, kRounds = 4;
constexpr size_t kBytes = kCount * sizeof(unsigned), kGranule = size_t{2} << 20;
constexpr size_t kLarge = size_t{96} << 20;  // more than one lease has left

struct Rank {
  const volatile unsigned* aborted;  // pinned
  unsigned* progress;                // pinned
  volatile unsigned* arrived;        // where the other one says how far it is
  volatile unsigned* peer_arrived;   // the other one's
  const unsigned *mine, *theirs;
};

// Waits for the other device's kernel of this round; false when the program has said stop.
__device__ bool Meet(const Rank* rank, unsigned round) {
  __threadfence_system();
  *rank->peer_arrived = round;
  unsigned aborted = 0;
  do {
    aborted = *rank->aborted;
  } while (aborted == 0 && *rank->arrived < round);
  return aborted == 0;
}

__global__ void AddUp(const Rank* rank, unsigned* sums, unsigned round) {
  __shared__ bool met;
  if (threadIdx.x == 0) met = Meet(rank, 2 * round - 1);
  __syncthreads();
  if (!met) return;
  for (int i = threadIdx.x; i < kCount; i += blockDim.x) {
    sums[i] = rank->mine[i] + *const_cast<const volatile unsigned*>(rank->theirs + i);
  }
  __syncthreads();
  if (threadIdx.x != 0) return;
  Meet(rank, 2 * round);  // nobody changes what the other one still reads
  *rank->progress = round;
}

__global__ void Fill(unsigned* values, unsigned seed) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  values[i] = i * 2654435761u + seed;
}

struct Device {
  Rank *rank, host;  // in device memory, and as it was uploaded
  unsigned *flag, *progress, *arrived, *sums;
  cudaStream_t stream;
};

static void Driver(CUresult found, const char* call) {
  EXPECT(found == CUDA_SUCCESS, "%s gave %d", call, found);
}
#define CU(name, ...) Driver(Function<decltype(&name)>(#name)(__VA_ARGS__), #name)

template <class Type>
static Type Function(const char* name) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result;
  CHECK(cudaGetDriverEntryPointByVersion(name, &found, 12000, cudaEnableDefault, &result));
  return reinterpret_cast<Type>(found);
}

static unsigned* Allocate(int device, size_t bytes) {
  unsigned* values = nullptr;
  CHECK(cudaSetDevice(device));
  CHECK(cudaMalloc(&values, bytes));
  return values;
}

static void Prepare(Device (&devices)[2]) {
  for (int i = 0; i < 2; ++i) {
    devices[i].arrived = Allocate(i, sizeof(unsigned));
    devices[i].sums = Allocate(i, kBytes);
    CHECK(cudaMalloc(&devices[i].rank, sizeof(Rank)));
    CHECK(cudaMemset(devices[i].arrived, 0, sizeof(unsigned)));
    CHECK(cudaDeviceSynchronize());  // streams that do not wait for the legacy one use it
    CHECK(cudaStreamCreateWithFlags(&devices[i].stream, cudaStreamNonBlocking));
    CHECK(cudaSetDevice(0));  // of which both devices' flags are
    CHECK(cudaHostAlloc(&devices[i].flag, sizeof(unsigned), cudaHostAllocMapped));
    CHECK(cudaHostAlloc(&devices[i].progress, sizeof(unsigned), cudaHostAllocMapped));
    *devices[i].flag = *devices[i].progress = 0;
  }
}

static void EnablePeers() {
  for (int i = 0; i < 2; ++i) {
    CHECK(cudaSetDevice(i));
    CHECK(cudaDeviceEnablePeerAccess(1 - i, 0));
  }
}

static void Upload(Device (&devices)[2], unsigned* const (&values)[2]) {
  for (int i = 0; i < 2; ++i) {
    devices[i].host = {devices[i].flag,        devices[i].progress, devices[i].arrived,
                       devices[1 - i].arrived, values[i],           values[1 - i]};
    CHECK(cudaSetDevice(i));
    CHECK(cudaMemcpyAsync(devices[i].rank, &devices[i].host, sizeof(Rank), cudaMemcpyHostToDevice,
                          devices[i].stream));
    CHECK(cudaStreamSynchronize(devices[i].stream));
  }
}

// The first device's kernel may run long before the second one's is there.
static void Reduce(Device (&devices)[2], unsigned* const (&values)[2], const char* what) {
  static unsigned round = 0;
  Upload(devices, values);
  for (int times = 0; times < kRounds; ++times) {
    ++round;
    for (int i = 0; i < 2; ++i) {
      CHECK(cudaSetDevice(i));
      Fill<<<kCount / kBlock, kBlock, 0, devices[i].stream>>>(values[i], round + 7 * i);
      AddUp<<<1, kBlock, 0, devices[i].stream>>>(devices[i].rank, devices[i].sums, round);
    }
    for (int i = 0; i < 2; ++i) {
      CHECK(cudaSetDevice(i));
      CHECK(cudaStreamSynchronize(devices[i].stream));
      EXPECT(*devices[i].progress == round, "%s: device %d is at %u, not %u", what, i,
             *devices[i].progress, round);
      std::vector<unsigned> found(kCount);
      CHECK(cudaMemcpy(found.data(), devices[i].sums, kBytes, cudaMemcpyDeviceToHost));
      for (int k = 0; k < kCount; ++k) {
        const unsigned wanted = 2 * (k * 2654435761u + round) + 7;
        EXPECT(found[k] == wanted, "%s: element %d on device %d is %u, not %u", what, k, i,
               found[k], wanted);
      }
    }
  }
}

static void CheckAllocations(Device (&devices)[2], unsigned* const (&before)[2]) {
  Reduce(devices, before, "memory from before the access");
  unsigned* after[2] = {Allocate(0, kBytes), Allocate(1, kBytes)};
  Reduce(devices, after, "memory from after it");
  for (int times = 0; times < 2; ++times) {
    unsigned* large[2] = {Allocate(0, kLarge), Allocate(1, kLarge)};
    unsigned* const ends[2] = {large[0] + (kLarge - kBytes) / sizeof(unsigned),
                               large[1] + (kLarge - kBytes) / sizeof(unsigned)};
    Reduce(devices, ends, times == 0 ? "much memory" : "memory used again");
    for (unsigned* values : large) CHECK(cudaFree(values));
  }
  unsigned* threads[2];
  std::thread([&] {
    for (int i = 0; i < 2; ++i) threads[i] = Allocate(i, kBytes);
  }).join();
  Reduce(devices, threads, "another thread's memory");
}

// Made and mapped in turns: the addresses are reserved while the other device is current.
static void CheckMappings(Device (&devices)[2]) {
  unsigned* values[2];
  const CUmemAccessDesc access[2] = {
      {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE},
      {{CU_MEM_LOCATION_TYPE_DEVICE, 1}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE}};
  for (int i = 0; i < 2; ++i) {
    CUmemAllocationProp properties = {};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, i};
    CUmemGenericAllocationHandle handle;
    CUdeviceptr address = 0;
    CHECK(cudaSetDevice(1 - i));
    CU(cuMemCreate, &handle, kGranule, &properties, 0);
    CU(cuMemAddressReserve, &address, kGranule, 0, 0, 0);
    CU(cuMemMap, address, kGranule, 0, handle, 0);
    CU(cuMemSetAccess, address, kGranule, access, 2);
    CU(cuMemRelease, handle);
    values[i] = reinterpret_cast<unsigned*>(address);
  }
  Reduce(devices, values, "mapped memory");
}

static void CheckPools(Device (&devices)[2]) {
  unsigned* values[2];
  for (int i = 0; i < 2; ++i) {
    cudaMemPool_t pool;
    cudaMemAccessDesc access = {};
    access.location = {cudaMemLocationTypeDevice, 1 - i};
    access.flags = cudaMemAccessFlagsProtReadWrite;
    CHECK(cudaSetDevice(i));
    CHECK(cudaDeviceGetDefaultMemPool(&pool, i));
    CHECK(cudaMemPoolSetAccess(pool, &access, 1));
    cudaMemAccessFlags flags = cudaMemAccessFlagsProtNone;
    CHECK(cudaMemPoolGetAccess(&flags, pool, &access.location));
    EXPECT(flags == cudaMemAccessFlagsProtReadWrite, "the pool says %d", flags);
    CHECK(cudaMallocAsync(&values[i], kBytes, devices[i].stream));
  }
  Reduce(devices, values, "a pool's memory");
  for (int i = 0; i < 2; ++i) {
    CHECK(cudaSetDevice(i));
    CHECK(cudaFreeAsync(values[i], devices[i].stream));
  }
}

// One kernel alone: nobody comes, and the flag ends it.
static void CheckAbort(Device (&devices)[2]) {
  for (int i = 0; i < 2; ++i) {
    *devices[i].flag = 1;
    CHECK(cudaSetDevice(i));
    AddUp<<<1, kBlock, 0, devices[i].stream>>>(devices[i].rank, devices[i].sums, 1u << 20);
    CHECK(cudaStreamSynchronize(devices[i].stream));
    EXPECT(*devices[i].progress < 1u << 20, "device %d did not stop", i);
  }
}

int main() {
  int can = 0;
  CHECK(cudaDeviceCanAccessPeer(&can, 0, 1));
  if (can == 0) return Pass("peer_collective");
  Device devices[2];
  Prepare(devices);
  unsigned* const before[2] = {Allocate(0, kBytes), Allocate(1, kBytes)};
  EnablePeers();
  CheckPools(devices);  // which peer access leaves out
  CheckAllocations(devices, before);
  CheckMappings(devices);
  CheckAbort(devices);
  return Pass("peer_collective");
}
