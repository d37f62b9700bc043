// Two processes with a device each, of two that both see: each has memory of its own device mapped
// in the other process and on the other's device, handed on as descriptors (as NCCL does), as 64
// bytes and in a pool. Kernels of both run at once and wait for what the other one writes.
#include <cuda.h>

#include <vector>

#include "ipc.h"

constexpr int kCount = 1 << 18, kBlock = 256, kRounds = 20;
constexpr size_t kBytes = size_t{2} << 20;
constexpr auto kType = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;

static void Driver(CUresult found, const char* call, CUresult wanted = CUDA_SUCCESS) {
  EXPECT(found == wanted, "%s gave %d, not %d", call, found, wanted);
}
#define CU(name, ...) Driver(Function<decltype(&name)>(#name)(__VA_ARGS__), #name)

template <class Type>
static Type Function(const char* name) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result;
  CHECK(cudaGetDriverEntryPointByVersion(name, &found, 12000, cudaEnableDefault, &result));
  return reinterpret_cast<Type>(found);
}

__host__ __device__ unsigned Number(int i, unsigned seed) { return i * 2654435761u + seed; }

__global__ void Fill(unsigned* values, unsigned seed) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  values[i] = Number(i, seed);
}

__global__ void CopyWords(unsigned* to, const unsigned* from) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  to[i] = from[i] + 1;
}

// Takes turns with the same kernel on the other device: each writes to the other's memory what it
// found in its own.
__global__ void TakeTurns(volatile unsigned* own, volatile unsigned* theirs, int first) {
  for (unsigned round = 1; round <= kRounds; ++round) {
    const unsigned wanted = 2 * round - (first ? 1 : 0);
    while (own[0] != wanted - 1) {
    }
    own[round] = wanted;
    __threadfence_system();
    theirs[0] = wanted;
  }
}

struct Memory {
  CUmemGenericAllocationHandle handle;
  unsigned* values;
};

// Mapped for the own device alone, wherever the memory is.
static unsigned* Map(CUmemGenericAllocationHandle handle, int own) {
  CUdeviceptr address = 0;
  CU(cuMemAddressReserve, &address, kBytes, 0, 0, 0);
  CU(cuMemMap, address, kBytes, 0, handle, 0);
  const CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, own},
                                  CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  CU(cuMemSetAccess, address, kBytes, &access, 1);
  return reinterpret_cast<unsigned*>(address);
}

static Memory Create(int own) {
  CUmemAllocationProp properties = {};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, own};
  properties.requestedHandleTypes = kType;
  Memory memory;
  CU(cuMemCreate, &memory.handle, kBytes, &properties, 0);
  memory.values = Map(memory.handle, own);
  return memory;
}

static Memory Exchange(Peer peer, const Memory& mine, int own) {
  int descriptor = -1;
  CU(cuMemExportToShareableHandle, &descriptor, mine.handle, kType, 0);
  peer.SendDescriptor(descriptor);
  close(descriptor);
  descriptor = peer.ReceiveDescriptor();
  Memory theirs;
  CU(cuMemImportFromShareableHandle, &theirs.handle,
     reinterpret_cast<void*>(static_cast<intptr_t>(descriptor)), kType);
  close(descriptor);
  CUmemAllocationProp properties;
  CU(cuMemGetAllocationPropertiesFromHandle, &properties, theirs.handle);
  EXPECT(properties.location.id == 1 - own, "memory of device %d", properties.location.id);
  theirs.values = Map(theirs.handle, own);
  return theirs;
}

static void Await(Peer peer) {
  CHECK(cudaDeviceSynchronize());
  peer.Send(1);
  peer.Receive<int>();
}

static void ExpectNumbers(const unsigned* device, unsigned seed, unsigned more, const char* what) {
  std::vector<unsigned> found(kCount);
  CHECK(cudaMemcpy(found.data(), device, kCount * sizeof(unsigned), cudaMemcpyDefault));
  for (int i = 0; i < kCount; ++i) {
    EXPECT(found[i] == Number(i, seed) + more, "%s: element %d is %u", what, i, found[i]);
  }
}

// Both write the other's memory, then read it.
static void CheckValues(Peer peer, unsigned* mine, unsigned* theirs, int own) {
  unsigned* copied;
  CHECK(cudaMalloc(&copied, kBytes));
  Fill<<<kCount / kBlock, kBlock>>>(theirs, 10 + own);
  Await(peer);
  ExpectNumbers(mine, 11 - own, 0, "written by the other process's device");
  CopyWords<<<kCount / kBlock, kBlock>>>(copied, theirs);
  ExpectNumbers(copied, 10 + own, 1, "read from the other process's device");
  Await(peer);
  CHECK(cudaMemset(theirs, 3 + own, kBytes));
  Await(peer);
  unsigned word = 0;
  CHECK(cudaMemcpy(&word, mine + kCount - 1, sizeof word, cudaMemcpyDefault));
  EXPECT(word == 0x01010101u * (4 - own), "set by the other process's device: %x", word);
  CHECK(cudaFree(copied));
}

static void CheckTurns(Peer peer, unsigned* mine, unsigned* theirs, int own) {
  CHECK(cudaMemset(mine, 0, kBytes));
  Await(peer);
  TakeTurns<<<1, 1>>>(mine, theirs, own == 0);
  Await(peer);
  std::vector<unsigned> found(kRounds + 1);
  CHECK(cudaMemcpy(found.data(), mine, found.size() * sizeof found[0], cudaMemcpyDefault));
  for (unsigned round = 1; round <= kRounds; ++round) {
    EXPECT(found[round] == 2 * round - (own == 0 ? 1 : 0), "turn %u: %u", round, found[round]);
  }
}

static void CheckHandles(Peer peer, int own) {
  unsigned *mine, *theirs;
  CHECK(cudaMalloc(&mine, kBytes));
  cudaIpcMemHandle_t handle;
  CHECK(cudaIpcGetMemHandle(&handle, mine));
  peer.Send(handle);
  handle = peer.Receive<cudaIpcMemHandle_t>();
  CHECK(cudaIpcOpenMemHandle(reinterpret_cast<void**>(&theirs), handle,
                             cudaIpcMemLazyEnablePeerAccess));
  CheckValues(peer, mine, theirs, own);
  CheckTurns(peer, mine, theirs, own);
  CHECK(cudaIpcCloseMemHandle(theirs));
  Await(peer);
  CHECK(cudaFree(mine));
}

// Memory of a pool of the own device, in the other process a pool that its device is given access
// to.
static void CheckPools(Peer peer, int own) {
  cudaMemPoolProps properties = {};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.handleTypes = cudaMemHandleTypePosixFileDescriptor;
  properties.location = {cudaMemLocationTypeDevice, own};
  cudaMemPool_t pool, second, imported;
  CHECK(cudaMemPoolCreate(&pool, &properties));
  CHECK(cudaMemPoolCreate(&second, &properties));
  void *mine, *theirs;
  CHECK(cudaMallocFromPoolAsync(&mine, kBytes, pool, nullptr));
  CHECK(cudaDeviceSynchronize());
  int descriptor = -1;
  CHECK(cudaMemPoolExportToShareableHandle(&descriptor, pool, properties.handleTypes, 0));
  peer.SendDescriptor(descriptor);
  close(descriptor);
  descriptor = peer.ReceiveDescriptor();
  CHECK(cudaMemPoolImportFromShareableHandle(
      &imported, reinterpret_cast<void*>(static_cast<intptr_t>(descriptor)), properties.handleTypes,
      0));
  close(descriptor);
  const cudaMemAccessDesc access = {{cudaMemLocationTypeDevice, own},
                                    cudaMemAccessFlagsProtReadWrite};
  CHECK(cudaMemPoolSetAccess(imported, &access, 1));
  cudaMemLocation location = access.location;
  cudaMemAccessFlags flags;
  CHECK(cudaMemPoolGetAccess(&flags, imported, &location));
  EXPECT(flags == cudaMemAccessFlagsProtReadWrite, "the access to the other's pool is %d", flags);
  cudaMemPoolPtrExportData piece;
  CHECK(cudaMemPoolExportPointer(&piece, mine));
  peer.Send(piece);
  cudaMemPoolPtrExportData other;
  void* elsewhere;
  CHECK(cudaMallocFromPoolAsync(&elsewhere, kBytes, second, nullptr));
  CHECK(cudaMemPoolExportPointer(&other, elsewhere));
  peer.Send(other);
  piece = peer.Receive<cudaMemPoolPtrExportData>();
  other = peer.Receive<cudaMemPoolPtrExportData>();
  // A program may have pieces of several pools, and try which one is whose.
  cudaError_t code = cudaMemPoolImportPointer(&theirs, imported, &other);
  EXPECT(code == cudaErrorInvalidValue, "a piece of another pool: %d", code);
  cudaGetLastError();
  CHECK(cudaMemPoolImportPointer(&theirs, imported, &piece));
  CheckValues(peer, static_cast<unsigned*>(mine), static_cast<unsigned*>(theirs), own);
  CHECK(cudaFreeAsync(theirs, nullptr));
  Await(peer);
  CHECK(cudaFreeAsync(mine, nullptr));
  CHECK(cudaFreeAsync(elsewhere, nullptr));
  CHECK(cudaMemPoolDestroy(imported));
  CHECK(cudaMemPoolDestroy(second));
  CHECK(cudaMemPoolDestroy(pool));
}

static void Play(Peer peer, int own) {
  CHECK(cudaSetDevice(own));
  CHECK(cudaFree(nullptr));
  const Memory mine = Create(own), theirs = Exchange(peer, mine, own);
  CheckValues(peer, mine.values, theirs.values, own);
  CheckTurns(peer, mine.values, theirs.values, own);
  for (const Memory& memory : {mine, theirs}) {
    CU(cuMemUnmap, reinterpret_cast<CUdeviceptr>(memory.values), kBytes);
    CU(cuMemRelease, memory.handle);
  }
  CheckHandles(peer, own);
  CheckPools(peer, own);
}

int main() {
  Peer peer = Fork();
  int can = 0;
  CHECK(cudaDeviceCanAccessPeer(&can, 0, 1));
  if (can != 0) Play(peer, peer.child == 0 ? 1 : 0);
  if (peer.child == 0) return 0;
  Join(peer);
  return Pass("peer_processes");
}
