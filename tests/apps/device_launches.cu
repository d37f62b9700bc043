// Kernels that launch kernels: a tree in which every node runs exactly once, a launch by each of
// many threads, copies and fills of kernels, and what is launched as the tail seeing all before it.
#include <vector>

#include "check.h"

constexpr int kLeaves = 512;
constexpr int kLaunchers = 1024;

// Nodes of a binary tree by number: the children of n are 2n and 2n + 1.
__global__ void Grow(unsigned* counts, int node) {
  if (threadIdx.x != 0) return;
  atomicAdd(&counts[node], 1);
  if (node >= kLeaves) return;
  cudaStream_t stream;
  if (cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess) return;
  Grow<<<1, 32>>>(counts, 2 * node);
  Grow<<<1, 32, 0, stream>>>(counts, 2 * node + 1);
  cudaStreamDestroy(stream);
}

// Of the other file.
__global__ void Mark(unsigned* counts, int index, double by);
__global__ void Sum(const unsigned* counts, int count, unsigned* sum);

__global__ void LaunchEach(unsigned* counts, unsigned* sum, unsigned* errors) {
  const int index = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (index == 0) {
    Sum<<<1, 64, 0, cudaStreamTailLaunch>>>(counts, kLaunchers, sum);
    if (cudaGetLastError() != cudaSuccess) atomicAdd(errors, 1);
  }
  Mark<<<1, 1, 64, cudaStreamFireAndForget>>>(counts, index, 0.75);
  if (cudaGetLastError() != cudaSuccess) atomicAdd(errors, 1);
}

__global__ void CopyAndFill(unsigned* data) {
  // To 0: the H200's driver (580) clears for other values, too.
  cudaMemsetAsync(data, 0, sizeof *data, nullptr);
  cudaMemcpyAsync(data + 1, data, sizeof *data, cudaMemcpyDeviceToDevice, nullptr);
  Mark<<<1, 1>>>(data, 0, 1.0);
}

__global__ void MakeMistake(unsigned* errors) {
  Mark<<<1, 4096>>>(errors, 0, 1.0);
  errors[0] = cudaGetLastError();
  errors[1] = cudaGetLastError();
}

int main() {
  constexpr int kNodes = 2 * kLeaves;
  unsigned *counts, *words;
  std::vector<unsigned> host(kNodes);
  CHECK(cudaDeviceSetLimit(cudaLimitDevRuntimePendingLaunchCount, 4096));
  CHECK(cudaMalloc(&counts, kNodes * sizeof *counts));
  CHECK(cudaMalloc(&words, 2 * sizeof *words));

  CHECK(cudaMemset(counts, 0, kNodes * sizeof *counts));
  Grow<<<1, 32>>>(counts, 1);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(host.data(), counts, kNodes * sizeof *counts, cudaMemcpyDeviceToHost));
  for (int node = 1; node < kNodes; ++node) {
    EXPECT(host[node] == 1, "node %d ran %u times", node, host[node]);
  }

  CHECK(cudaMemset(counts, 0, kNodes * sizeof *counts));
  CHECK(cudaMemset(words, 0, 2 * sizeof *words));
  LaunchEach<<<kLaunchers / 128, 128>>>(counts, words, words + 1);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(host.data(), words, 2 * sizeof *words, cudaMemcpyDeviceToHost));
  EXPECT(host[1] == 0, "%u launches failed", host[1]);
  EXPECT(host[0] == 3 * kLaunchers, "the tail launch saw %u of %d", host[0], 3 * kLaunchers);
  CHECK(cudaMemcpy(host.data(), counts, kLaunchers * sizeof *counts, cudaMemcpyDeviceToHost));
  for (int i = 0; i < kLaunchers; ++i) EXPECT(host[i] == 3, "child %d added %u", i, host[i]);

  CHECK(cudaMemset(words, 1, 2 * sizeof *words));
  CopyAndFill<<<1, 1>>>(words);
  CHECK(cudaMemcpy(host.data(), words, 2 * sizeof *words, cudaMemcpyDeviceToHost));
  EXPECT(host[0] == 4 && host[1] == 0, "%x and %x", host[0], host[1]);

  MakeMistake<<<1, 1>>>(words);
  CHECK(cudaMemcpy(host.data(), words, 2 * sizeof *words, cudaMemcpyDeviceToHost));
  EXPECT(host[0] == cudaErrorInvalidConfiguration && host[1] == cudaSuccess,
         "too large a block gave %u, then %u", host[0], host[1]);
  CHECK(cudaFree(words));
  CHECK(cudaFree(counts));
  return Pass("device_launches");
}
