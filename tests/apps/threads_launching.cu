// Eight threads, each with its own stream and memory, launch, copy and check at the same time.
#include <thread>
#include <vector>

#include "check.h"

constexpr int kThreads = 8, kRounds = 60, kCount = 1024;

__global__ void Mix(int* values, int factor, int addend) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  values[i] = values[i] * factor + addend;
}

static void Work(int thread, int* launches) {
  cudaStream_t stream;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  int* values;
  CHECK(cudaMalloc(&values, kCount * sizeof(int)));
  std::vector<int> host(kCount), expected(kCount);
  for (int i = 0; i < kCount; ++i) expected[i] = i * (thread + 1);
  CHECK(cudaMemcpyAsync(values, expected.data(), kCount * sizeof(int), cudaMemcpyHostToDevice,
                        stream));
  for (int round = 0; round < kRounds; ++round) {
    Mix<<<kCount / 128, 128, 0, stream>>>(values, 3, thread + round);
    CHECK(cudaGetLastError());
    ++*launches;
    for (int& value : expected) {
      value = static_cast<int>(value * 3u + static_cast<unsigned>(thread + round));
    }
    if (round % 10 != 9) continue;
    CHECK(
        cudaMemcpyAsync(host.data(), values, kCount * sizeof(int), cudaMemcpyDeviceToHost, stream));
    CHECK(cudaStreamSynchronize(stream));
    for (int i = 0; i < kCount; ++i) {
      EXPECT(host[i] == expected[i], "thread %d, round %d, element %d is %d, not %d", thread, round,
             i, host[i], expected[i]);
    }
  }
  CHECK(cudaFree(values));
  CHECK(cudaStreamDestroy(stream));
}

int main() {
  std::vector<std::thread> threads;
  std::vector<int> launches(kThreads, 0);
  for (int i = 0; i < kThreads; ++i) threads.emplace_back(Work, i, &launches[i]);
  for (std::thread& thread : threads) thread.join();
  for (int count : launches) EXPECT(count == kRounds, "%d launches", count);
  return Pass("threads_launching");
}
