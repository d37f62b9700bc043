// Several threads, each with its stream and managed memory that belongs to it, and pinned memory:
// what one thread's waits and launches exchange leaves the others' bytes alone, also in one page.
#include <cuda_runtime.h>

#include <thread>
#include <vector>

#include "check.h"

constexpr int kThreads = 4, kRounds = 40, kCount = 500;

__global__ void Step(int* values, int amount) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < kCount) values[i] = values[i] * 3 + amount;
}

// Stands for what one element should be.
static int Stepped(int value, int amount) { return value * 3 + amount; }

static void Work(int thread, int* pinned) {
  cudaStream_t stream;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  int* managed = nullptr;
  CHECK(cudaMallocManaged(&managed, kCount * sizeof(int), cudaMemAttachHost));
  CHECK(cudaStreamAttachMemAsync(stream, managed));
  CHECK(cudaStreamSynchronize(stream));
  for (int round = 0; round < kRounds; ++round) {
    for (int i = 0; i < kCount; ++i) managed[i] = pinned[i] = thread * 1000 + round + i;
    Step<<<2, 256, 0, stream>>>(managed, thread);
    Step<<<2, 256, 0, stream>>>(pinned, -thread);
    Step<<<2, 256, 0, stream>>>(managed, round);
    CHECK(cudaStreamSynchronize(stream));
    for (int i = 0; i < kCount; ++i) {
      const int start = thread * 1000 + round + i;
      const int expected = Stepped(Stepped(start, thread), round);
      EXPECT(managed[i] == expected, "thread %d, round %d: managed element %d is %d, not %d",
             thread, round, i, managed[i], expected);
      EXPECT(pinned[i] == Stepped(start, -thread), "thread %d, round %d: pinned element %d is %d",
             thread, round, i, pinned[i]);
    }
  }
  CHECK(cudaFree(managed));
  CHECK(cudaStreamDestroy(stream));
}

int main() {
  int* pinned = nullptr;
  CHECK(cudaHostAlloc(&pinned, kThreads * kCount * sizeof(int), cudaHostAllocMapped));
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back(Work, thread, pinned + thread * kCount);
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(cudaFreeHost(pinned));
  return Pass("managed_threads");
}
