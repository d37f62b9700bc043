// Thousands of launches over several streams each count themselves: none may be lost or run twice.
#include "check.h"

constexpr int kLaunches = 6000, kStreams = 3;

__global__ void Count(unsigned* total, unsigned* each, int number) {
  atomicAdd(total, 1u);
  atomicAdd(&each[number], 1u);
}

int main() {
  unsigned *total, *each;
  CHECK(cudaMalloc(&total, sizeof(unsigned)));
  CHECK(cudaMalloc(&each, kLaunches * sizeof(unsigned)));
  CHECK(cudaMemset(total, 0, sizeof(unsigned)));
  CHECK(cudaMemset(each, 0, kLaunches * sizeof(unsigned)));
  CHECK(cudaDeviceSynchronize());
  cudaStream_t streams[kStreams];
  for (cudaStream_t& stream : streams) {
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  }
  for (int i = 0; i < kLaunches; ++i) {
    Count<<<1, 1, 0, streams[i % kStreams]>>>(total, each, i);
    CHECK(cudaGetLastError());
  }
  CHECK(cudaDeviceSynchronize());
  unsigned counted = 0;
  static unsigned counts[kLaunches];
  CHECK(cudaMemcpy(&counted, total, sizeof counted, cudaMemcpyDeviceToHost));
  CHECK(cudaMemcpy(counts, each, sizeof counts, cudaMemcpyDeviceToHost));
  EXPECT(counted == kLaunches, "%u launches ran, not %d", counted, kLaunches);
  for (int i = 0; i < kLaunches; ++i)
    EXPECT(counts[i] == 1, "launch %d ran %u times", i, counts[i]);
  for (cudaStream_t stream : streams) CHECK(cudaStreamDestroy(stream));
  CHECK(cudaFree(total));
  CHECK(cudaFree(each));
  return Pass("exactly_once");
}
