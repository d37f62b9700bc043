// Streams wait for values that the program writes into pinned memory, and write values there for
// which the program waits: with each value comes all that was written before it.
#include <cuda.h>
#include <cuda_runtime.h>

#include <atomic>
#include <chrono>
#include <new>
#include <thread>

#include "check.h"

constexpr int kCount = 20000;
constexpr size_t kBytes = kCount * sizeof(int);

__global__ void AddToAll(int* values, int amount) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < kCount) values[i] += amount;
}

static void Driver(CUresult code, const char* what) {
  EXPECT(code == CUDA_SUCCESS, "%s gave %d", what, code);
}

static void WaitFor(std::atomic<unsigned>* flag, unsigned value) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (flag->load() != value) {
    EXPECT(std::chrono::steady_clock::now() < end, "the flag is %u, not %u", flag->load(), value);
    std::this_thread::yield();
  }
}

struct Shared {
  std::atomic<unsigned>* from_host;
  std::atomic<unsigned>* from_device;
  int* values;  // of kernels, in pinned memory
  int* source;  // of copies, in pinned memory that no kernel sees
  int* device;
};

// The whole round is queued before the program writes anything of it.
static void Round(const Shared& shared, unsigned round, cudaStream_t stream) {
  Driver(cuStreamWaitValue32(stream, reinterpret_cast<CUdeviceptr>(shared.from_host), round,
                             CU_STREAM_WAIT_VALUE_EQ),
         "the wait");
  AddToAll<<<(kCount + 255) / 256, 256, 0, stream>>>(shared.values, 1);
  CHECK(cudaMemcpyAsync(shared.device, shared.source, kBytes, cudaMemcpyHostToDevice, stream));
  Driver(cuStreamWriteValue32(stream, reinterpret_cast<CUdeviceptr>(shared.from_device), round, 0),
         "the write");
  EXPECT(cudaStreamQuery(stream) == cudaErrorNotReady, "the stream did not wait");
  for (int i = 0; i < kCount; ++i) {
    shared.values[i] = static_cast<int>(round) * i;
    shared.source[i] = static_cast<int>(round) + i;
  }
  shared.from_host->store(round);
  WaitFor(shared.from_device, round);
  for (int i = 0; i < kCount; ++i) {
    const int expected = static_cast<int>(round) * i + 1;
    EXPECT(shared.values[i] == expected, "round %u: element %d is %d, not %d", round, i,
           shared.values[i], expected);
  }
  static int copied[kCount];
  CHECK(cudaMemcpy(copied, shared.device, kBytes, cudaMemcpyDeviceToHost));
  for (int i = 0; i < kCount; ++i) {
    EXPECT(copied[i] == static_cast<int>(round) + i, "round %u: copied %d", round, copied[i]);
  }
}

// Two waits that end in the other order.
static void OtherOrder(const Shared& shared, cudaStream_t one, cudaStream_t two) {
  const auto first = reinterpret_cast<CUdeviceptr>(shared.from_host);
  const auto second = reinterpret_cast<CUdeviceptr>(shared.from_device);
  shared.from_host->store(0);
  shared.from_device->store(0);
  Driver(cuStreamWaitValue32(one, first, 0x30, CU_STREAM_WAIT_VALUE_AND), "the first wait");
  Driver(cuStreamWaitValue32(two, second, 3, CU_STREAM_WAIT_VALUE_GEQ), "the second wait");
  Driver(cuStreamWriteValue32(two, first, 0x10, 0), "the write");
  shared.from_device->store(4);
  CHECK(cudaStreamSynchronize(two));
  CHECK(cudaStreamSynchronize(one));
  EXPECT(shared.from_host->load() == 0x10, "the flag is %u", shared.from_host->load());
}

int main() {
  Shared shared{};
  void* flags = nullptr;
  CHECK(cudaHostAlloc(&flags, 128, cudaHostAllocMapped));
  shared.from_host = new (flags) std::atomic<unsigned>(0);
  shared.from_device = new (static_cast<char*>(flags) + 64) std::atomic<unsigned>(0);
  CHECK(cudaHostAlloc(&shared.values, kBytes, cudaHostAllocMapped));
  CHECK(cudaMallocHost(&shared.source, kBytes));
  CHECK(cudaMalloc(&shared.device, kBytes));
  cudaStream_t one, two;
  CHECK(cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking));
  CHECK(cudaStreamCreateWithFlags(&two, cudaStreamNonBlocking));
  // The driver loads a kernel at its first launch, and cannot while a stream waits for a flag.
  AddToAll<<<(kCount + 255) / 256, 256, 0, one>>>(shared.values, 0);
  CHECK(cudaStreamSynchronize(one));
  for (unsigned round = 1; round <= 10; ++round) Round(shared, round, one);
  OtherOrder(shared, one, two);
  CHECK(cudaStreamDestroy(one));
  CHECK(cudaStreamDestroy(two));
  return Pass("mapped_flags");
}
