// Work whose numbers are known, for a test of traces: two threads launch on streams of their own,
// copy up and down, and wait. It prints what it did.
#include <nvtx3/nvToolsExt.h>

#include <thread>
#include <vector>

#include "check.h"

constexpr int kCount = 4096, kSteps = 20;

__global__ void TracedScale(int* values) { values[blockIdx.x * blockDim.x + threadIdx.x] *= 2; }

__global__ void TracedAdd(int* values) { values[blockIdx.x * blockDim.x + threadIdx.x] += 1; }

static void Work(bool adds) {
  cudaStream_t stream;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  int* values;
  CHECK(cudaMalloc(&values, kCount * sizeof(int)));
  std::vector<int> host(kCount, 1);
  for (int step = 0; step < kSteps; ++step) {
    nvtxRangePushA(adds ? "step that adds" : "step that scales");
    CHECK(
        cudaMemcpyAsync(values, host.data(), kCount * sizeof(int), cudaMemcpyHostToDevice, stream));
    if (adds) {
      TracedAdd<<<kCount / 128, 128, 0, stream>>>(values);
    } else {
      TracedScale<<<kCount / 128, 128, 0, stream>>>(values);
    }
    CHECK(cudaGetLastError());
    CHECK(
        cudaMemcpyAsync(host.data(), values, kCount * sizeof(int), cudaMemcpyDeviceToHost, stream));
    CHECK(cudaStreamSynchronize(stream));
    nvtxRangePop();
  }
  const int expected = adds ? 1 + kSteps : 1 << kSteps;
  EXPECT(host[7] == expected, "element 7 is %d, not %d", host[7], expected);
  CHECK(cudaFree(values));
  CHECK(cudaStreamDestroy(stream));
}

int main() {
  CHECK(cudaFree(nullptr));
  std::thread other(Work, true);
  Work(false);
  other.join();
  std::printf("LAUNCHES %d COPIES %d\n", 2 * kSteps, 4 * kSteps);
  std::printf("PASS traced_steps\n");
  return 0;
}
