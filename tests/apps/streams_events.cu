// Two streams hand an array back and forth, ordered by nothing but events and cross-stream waits.
#include <vector>

#include "check.h"

constexpr int kCount = 4096, kRounds = 50;

__global__ void AddOne(int* values) { values[blockIdx.x * blockDim.x + threadIdx.x] += 1; }

__global__ void Double(int* values) { values[blockIdx.x * blockDim.x + threadIdx.x] *= 2; }

int main() {
  cudaStream_t first, second;
  CHECK(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking));
  CHECK(cudaStreamCreateWithPriority(&second, cudaStreamNonBlocking, -1));
  cudaEvent_t added, doubled, start, end;
  CHECK(cudaEventCreateWithFlags(&added, cudaEventDisableTiming));
  CHECK(cudaEventCreateWithFlags(&doubled, cudaEventDisableTiming));
  CHECK(cudaEventCreate(&start));
  CHECK(cudaEventCreate(&end));

  int* values;
  CHECK(cudaMalloc(&values, kCount * sizeof(int)));
  std::vector<int> host(kCount);
  for (int i = 0; i < kCount; ++i) host[i] = i;
  CHECK(cudaMemcpyAsync(values, host.data(), kCount * sizeof(int), cudaMemcpyHostToDevice, first));
  CHECK(cudaEventRecord(start, first));
  for (int round = 0; round < kRounds; ++round) {
    AddOne<<<kCount / 128, 128, 0, first>>>(values);
    CHECK(cudaGetLastError());
    CHECK(cudaEventRecord(added, first));
    CHECK(cudaStreamWaitEvent(second, added, 0));
    Double<<<kCount / 128, 128, 0, second>>>(values);
    CHECK(cudaGetLastError());
    CHECK(cudaEventRecord(doubled, second));
    CHECK(cudaStreamWaitEvent(first, doubled, 0));
  }
  CHECK(cudaEventRecord(end, first));
  CHECK(cudaEventSynchronize(end));
  CHECK(cudaEventQuery(doubled));
  float milliseconds = -1;
  CHECK(cudaEventElapsedTime(&milliseconds, start, end));
  EXPECT(milliseconds > 0 && milliseconds < 60000, "elapsed %g ms", milliseconds);

  CHECK(cudaMemcpy(host.data(), values, kCount * sizeof(int), cudaMemcpyDeviceToHost));
  for (int i = 0; i < kCount; ++i) {
    unsigned expected = i;
    for (int round = 0; round < kRounds; ++round) expected = (expected + 1) * 2;
    EXPECT(host[i] == static_cast<int>(expected), "element %d is %d, not %d", i, host[i],
           static_cast<int>(expected));
  }
  CHECK(cudaEventDestroy(added));
  CHECK(cudaEventDestroy(doubled));
  CHECK(cudaEventDestroy(start));
  CHECK(cudaEventDestroy(end));
  CHECK(cudaStreamDestroy(first));
  CHECK(cudaStreamDestroy(second));
  CHECK(cudaFree(values));
  return Pass("streams_events");
}
