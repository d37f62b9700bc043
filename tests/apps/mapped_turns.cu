// The program and its kernels take turns with pinned memory that both touch: the program writes, a
// kernel answers beside it, the program waits in one of several ways and reads. At first one
// thread; then several at once, each with a stream and words of its own between the others'.
#include <cstring>
#include <thread>
#include <vector>

#include "check.h"

constexpr int kThreads = 4;
constexpr int kWords = 96;  // of each thread; all of a turn lie in few pages
constexpr int kTurns = 120;

struct Words {
  int asked[kWords][kThreads];
  int answered[kWords][kThreads];
};

__global__ void Answer(Words* words, int thread, int turn) {
  const int word = threadIdx.x;
  words->answered[word][thread] = 3 * words->asked[word][thread] + turn;
}

enum class Wait { kStream, kEvent, kQuery, kContext, kWays };

static void WaitFor(cudaStream_t stream, cudaEvent_t event, Wait way) {
  switch (way) {
    case Wait::kEvent:
      CHECK(cudaEventRecord(event, stream));
      CHECK(cudaEventSynchronize(event));
      break;
    case Wait::kQuery: {
      cudaError_t state = cudaSuccess;
      while ((state = cudaStreamQuery(stream)) == cudaErrorNotReady) std::this_thread::yield();
      CHECK(state);
      break;
    }
    case Wait::kContext:
      CHECK(cudaDeviceSynchronize());
      break;
    default:
      CHECK(cudaStreamSynchronize(stream));
  }
}

// Waits in this way, or in one after the other.
static void TakeTurns(Words* words, int thread, Wait way) {
  cudaStream_t stream = nullptr;
  cudaEvent_t event = nullptr;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  for (int turn = 0; turn < kTurns; ++turn) {
    for (int word = 0; word < kWords; ++word) words->asked[word][thread] = turn * word + thread;
    Answer<<<1, kWords, 0, stream>>>(words, thread, turn);
    CHECK(cudaGetLastError());
    WaitFor(stream, event, way == Wait::kWays ? static_cast<Wait>(turn % 4) : way);
    for (int word = 0; word < kWords; ++word) {
      const int expected = 3 * (turn * word + thread) + turn;
      EXPECT(words->answered[word][thread] == expected, "thread %d, turn %d, word %d: %d, not %d",
             thread, turn, word, words->answered[word][thread], expected);
    }
  }
  CHECK(cudaEventDestroy(event));
  CHECK(cudaStreamDestroy(stream));
}

int main(int argc, char** argv) {
  Words* words = nullptr;
  CHECK(cudaHostAlloc(&words, sizeof(Words), cudaHostAllocMapped));
  if (argc > 1) {  // one thread alone, that waits for its stream or for everything
    TakeTurns(words, 0, std::strcmp(argv[1], "stream") == 0 ? Wait::kStream : Wait::kContext);
  } else {
    TakeTurns(words, 0, Wait::kWays);
    std::vector<std::thread> threads;
    for (int thread = 0; thread < kThreads; ++thread) {
      threads.emplace_back(TakeTurns, words, thread, Wait::kWays);
    }
    for (std::thread& thread : threads) thread.join();
  }
  CHECK(cudaFreeHost(words));
  return Pass("mapped_turns");
}
