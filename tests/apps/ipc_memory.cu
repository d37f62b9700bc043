// Memory and events of one process in another: handles of cudaMalloc's memory, small pieces of one
// block, a handle opened twice, what is written on either side, events that order two processes'
// streams, and the codes of wrong handles.
#include <cuda.h>

#include <cstring>
#include <vector>

#include "ipc.h"

constexpr int kCount = 1 << 20, kBlock = 256;

struct Offer {
  cudaIpcMemHandle_t large, small, other;
  cudaIpcEventHandle_t ready, answered;
};

__global__ void Fill(unsigned* values, unsigned seed) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  values[i] = i * 2654435761u + seed;
}

__global__ void Add(unsigned* values, unsigned addend) {
  values[blockIdx.x * blockDim.x + threadIdx.x] += addend;
}

// Holds its stream until the host lets it go.
__global__ void SlowFill(unsigned* values, unsigned seed, int rounds) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned spin = i;
  for (int round = 0; round < rounds; ++round) spin = spin * 1664525 + 1013904223;
  values[i] = (spin | 1) != 0 ? i * 2654435761u + seed : 0;
}

static void ExpectFill(const unsigned* device, int count, unsigned seed, const char* what) {
  std::vector<unsigned> found(count);
  CHECK(cudaMemcpy(found.data(), device, count * sizeof(unsigned), cudaMemcpyDeviceToHost));
  for (int i = 0; i < count; ++i) {
    EXPECT(found[i] == i * 2654435761u + seed, "%s: element %d is %u", what, i, found[i]);
  }
}

static void ExpectCode(cudaError_t found, cudaError_t wanted, const char* what) {
  EXPECT(found == wanted, "%s gave %d (%s)", what, found, cudaGetErrorString(found));
  cudaGetLastError();
}

// The call that runtimes before CUDA 11 use: it does not open twice.
static void OpenByFirstForm(const Offer& offer) {
  using Open = CUresult (*)(CUdeviceptr*, CUipcMemHandle, unsigned);
  void* found = nullptr;
  cudaDriverEntryPointQueryResult status;
  CHECK(cudaGetDriverEntryPointByVersion("cuIpcOpenMemHandle", &found, 4010, cudaEnableDefault,
                                         &status));
  EXPECT(status == cudaDriverEntryPointSuccess, "status %d", status);
  const auto first_form = reinterpret_cast<Open>(found);
  CUipcMemHandle handle;
  static_assert(sizeof handle == sizeof offer.large);
  std::memcpy(&handle, &offer.large, sizeof handle);
  CUdeviceptr opened = 0;
  CUresult result = first_form(&opened, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
  EXPECT(result == CUDA_SUCCESS && opened != 0, "code %d, address %llx", result, opened);
  CUdeviceptr again = 0;
  result = first_form(&again, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
  EXPECT(result == CUDA_ERROR_ALREADY_MAPPED, "opened twice: code %d", result);
  ExpectFill(reinterpret_cast<unsigned*>(opened), kCount, 1, "opened by the first form");
  CHECK(cudaIpcCloseMemHandle(reinterpret_cast<void*>(opened)));
  std::memset(&handle, 0x41, sizeof handle);
  result = first_form(&opened, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
  EXPECT(result != CUDA_SUCCESS, "a handle of nothing was opened");
}

static int Child(Peer peer) {
  const Offer offer = peer.Receive<Offer>();
  unsigned *large, *again, *small, *other;
  auto open = [](unsigned** pointer, const cudaIpcMemHandle_t& handle) {
    CHECK(cudaIpcOpenMemHandle(reinterpret_cast<void**>(pointer), handle,
                               cudaIpcMemLazyEnablePeerAccess));
  };
  CHECK(cudaFree(nullptr));  // the driver's call needs the context
  OpenByFirstForm(offer);
  open(&large, offer.large);
  open(&again, offer.large);
  EXPECT(large == again, "opened twice: %p and %p", static_cast<void*>(large),
         static_cast<void*>(again));
  open(&small, offer.small);
  open(&other, offer.other);
  cudaPointerAttributes attributes;
  CHECK(cudaPointerGetAttributes(&attributes, large));
  EXPECT(attributes.type == cudaMemoryTypeDevice, "type %d", attributes.type);
  ExpectFill(large, kCount, 1, "large");
  ExpectFill(small, 64, 2, "small");
  ExpectFill(other, 64, 3, "other");
  Add<<<kCount / kBlock, kBlock>>>(large, 10);
  CHECK(cudaMemset(small, 0x5a, 64 * sizeof *small));
  CHECK(cudaDeviceSynchronize());
  ExpectCode(cudaFree(large), cudaErrorInvalidValue, "freeing what another process owns");
  ExpectFill(large, kCount, 11, "after its own kernel");
  peer.Send(0);

  // Order by events: the parent's slow kernel, then ours, then the parent's.
  cudaEvent_t ready, answered;
  CHECK(cudaIpcOpenEventHandle(&ready, offer.ready));
  CHECK(cudaIpcOpenEventHandle(&answered, offer.answered));
  cudaStream_t stream;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  for (int round = 0; round < 20; ++round) {
    peer.Receive<int>();  // it has recorded `ready`
    CHECK(cudaStreamWaitEvent(stream, ready, 0));
    Add<<<kCount / kBlock, kBlock, 0, stream>>>(large, 1);
    CHECK(cudaEventRecord(answered, stream));
    peer.Send(round);
  }
  CHECK(cudaStreamSynchronize(stream));
  CHECK(cudaEventDestroy(ready));
  CHECK(cudaEventDestroy(answered));
  CHECK(cudaIpcCloseMemHandle(again));
  ExpectFill(other, 64, 3, "other, with one opening closed");
  peer.Receive<int>();             // it has looked at the last round
  CHECK(cudaMemset(large, 0, 4));  // still open once
  CHECK(cudaIpcCloseMemHandle(large));
  CHECK(cudaIpcCloseMemHandle(small));
  CHECK(cudaIpcCloseMemHandle(other));
  ExpectCode(cudaIpcCloseMemHandle(other), cudaErrorInvalidValue, "closing twice");
  ExpectCode(cudaMemset(large, 0, 4), cudaErrorInvalidValue, "closed memory");
  return 0;
}

static void CheckCodes(const Offer& offer, unsigned* large) {
  void* pointer = nullptr;
  ExpectCode(cudaIpcOpenMemHandle(&pointer, offer.large, cudaIpcMemLazyEnablePeerAccess),
             cudaErrorDeviceUninitialized, "opening in the same process");
  cudaIpcMemHandle_t wrong = {};
  ExpectCode(cudaIpcOpenMemHandle(&pointer, wrong, cudaIpcMemLazyEnablePeerAccess),
             cudaErrorInvalidValue, "a handle of zeros");
  wrong = offer.large;
  ExpectCode(cudaIpcOpenMemHandle(&pointer, wrong, 0), cudaErrorInvalidValue, "no flags");
  unsigned on_the_stack = 0;
  ExpectCode(cudaIpcGetMemHandle(&wrong, &on_the_stack), cudaErrorInvalidValue, "host memory");
  cudaEvent_t plain;
  cudaIpcEventHandle_t handle;
  CHECK(cudaEventCreateWithFlags(&plain, cudaEventDisableTiming));
  const cudaError_t result = cudaIpcGetEventHandle(&handle, plain);
  EXPECT(result != cudaSuccess, "an event of one process was shared");
  cudaGetLastError();
  ExpectCode(cudaEventCreateWithFlags(&plain, cudaEventInterprocess), cudaErrorInvalidValue,
             "timing between processes");
}

int main() {
  Peer peer = Fork();
  if (peer.child == 0) return Child(peer);
  unsigned *large, *small, *other;
  Offer offer;
  CHECK(cudaMalloc(&large, kCount * sizeof *large));
  CHECK(cudaMalloc(&small, 64 * sizeof *small));
  CHECK(cudaMalloc(&other, 64 * sizeof *other));
  Fill<<<kCount / kBlock, kBlock>>>(large, 1);
  Fill<<<1, 64>>>(small, 2);
  Fill<<<1, 64>>>(other, 3);
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaIpcGetMemHandle(&offer.large, large));
  CHECK(cudaIpcGetMemHandle(&offer.small, small));
  CHECK(cudaIpcGetMemHandle(&offer.other, other));
  cudaEvent_t ready, answered;
  constexpr unsigned kFlags = cudaEventDisableTiming | cudaEventInterprocess;
  CHECK(cudaEventCreateWithFlags(&ready, kFlags));
  CHECK(cudaEventCreateWithFlags(&answered, kFlags));
  CHECK(cudaEventQuery(ready));  // never recorded
  CHECK(cudaIpcGetEventHandle(&offer.ready, ready));
  CHECK(cudaIpcGetEventHandle(&offer.answered, answered));
  CheckCodes(offer, large);
  peer.Send(offer);
  peer.Receive<int>();
  ExpectFill(large, kCount, 11, "after the other process's first kernel");

  cudaStream_t stream;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  for (int round = 0; round < 20; ++round) {
    SlowFill<<<kCount / kBlock, kBlock, 0, stream>>>(large, round, 40);
    CHECK(cudaEventRecord(ready, stream));
    peer.Send(round);
    peer.Receive<int>();  // it has recorded `answered`
    if (round % 2 == 0) {
      CHECK(cudaStreamWaitEvent(stream, answered, 0));
      Add<<<kCount / kBlock, kBlock, 0, stream>>>(large, 1);
      CHECK(cudaStreamSynchronize(stream));
      ExpectFill(large, kCount, round + 2, "after both processes' kernels");
    } else {
      CHECK(cudaEventSynchronize(answered));
      CHECK(cudaEventQuery(answered));
      ExpectFill(large, kCount, round + 1, "after the other process's kernel");
    }
  }
  peer.Send(0);
  Join(peer);
  std::vector<unsigned> found(64);
  CHECK(cudaMemcpy(found.data(), small, 64 * sizeof *small, cudaMemcpyDeviceToHost));
  for (unsigned value : found) EXPECT(value == 0x5a5a5a5a, "small has %x", value);
  ExpectFill(other, 64, 3, "other, at the end");
  CHECK(cudaEventDestroy(ready));
  CHECK(cudaFree(small));
  CHECK(cudaFree(large));
  return Pass("ipc_memory");
}
