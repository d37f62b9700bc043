// Launches in a row without a wait, with pinned memory that the program writes between them: each
// kernel sees at least what was written before its launch. One thread, then several at once, each
// with words of its own; between the launches other streams, events, copies, and memory that comes
// and goes.
#include <thread>
#include <vector>

#include "check.h"

constexpr int kThreads = 3;
constexpr int kWords = 4000;  // 16,000 bytes of each thread: of several pages
constexpr int kLaunches = 600;
constexpr size_t kBlock = size_t{8} << 20;

struct Words {
  int value[kThreads][kWords];
};

// The first and the last word that the program has written, as this launch finds them.
__global__ void Look(const int* words, int first, int last, int2* seen) {
  *seen = make_int2(words[first], words[last]);
}

static void Burst(Words* words, int thread) {
  int* mine = words->value[thread];
  cudaStream_t stream = nullptr, other = nullptr;
  cudaEvent_t event = nullptr;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  CHECK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
  CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  int2* seen = nullptr;
  CHECK(cudaMalloc(&seen, kLaunches * sizeof(int2)));
  for (int launch = 0; launch < kLaunches; ++launch) {
    const int first = launch * 7 % kWords, last = kWords - 1 - first;
    mine[first] = mine[last] = launch + 1;
    cudaStream_t where = launch % 5 == 4 ? other : stream;
    if (where == other) {
      CHECK(cudaEventRecord(event, stream));
      CHECK(cudaStreamWaitEvent(other, event));
    }
    Look<<<1, 1, 0, where>>>(mine, first, last, seen + launch);
    CHECK(cudaGetLastError());
    if (launch % 50 == 20) CHECK(cudaMemsetAsync(seen, 0, 0, stream));
    if (launch % 97 == 60) CHECK(cudaStreamSynchronize(stream));
    if (launch % 131 == 100) {  // a map that waits for what is mapped there to be used no more
      void* block = nullptr;
      CHECK(cudaMalloc(&block, kBlock));
      CHECK(cudaMemsetAsync(block, launch, kBlock, stream));
      CHECK(cudaFree(block));
    }
  }
  CHECK(cudaStreamSynchronize(other));
  std::vector<int2> found(kLaunches);
  CHECK(cudaMemcpyAsync(found.data(), seen, kLaunches * sizeof(int2), cudaMemcpyDeviceToHost,
                        stream));
  CHECK(cudaStreamSynchronize(stream));
  for (int launch = 0; launch < kLaunches; ++launch) {
    const int2 is = found[launch];
    const bool good = is.x > launch && is.y > launch && is.x <= kLaunches && is.y <= kLaunches;
    EXPECT(good, "thread %d, launch %d found %d and %d", thread, launch, is.x, is.y);
  }
  CHECK(cudaFree(seen));
  CHECK(cudaEventDestroy(event));
  CHECK(cudaStreamDestroy(other));
  CHECK(cudaStreamDestroy(stream));
}

int main(int argc, char**) {
  Words* words = nullptr;
  CHECK(cudaHostAlloc(&words, sizeof(Words), cudaHostAllocMapped));
  Burst(words, 0);
  if (argc == 1) {  // else one thread alone
    std::vector<std::thread> threads;
    for (int thread = 0; thread < kThreads; ++thread) threads.emplace_back(Burst, words, thread);
    for (std::thread& thread : threads) thread.join();
  }
  CHECK(cudaFreeHost(words));
  return Pass("mapped_bursts");
}
