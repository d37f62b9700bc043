// An event recorded by one thread and waited for, queried or synchronized with by another: the
// second never sees an older record than the first had returned from.
#include <atomic>
#include <thread>

#include "check.h"

constexpr int kRounds = 150;

__global__ void WriteLate(int* value, int round, int turns) {
  unsigned x = round;
  for (int turn = 0; turn < turns; ++turn) x = x * 1664525u + 1013904223u;
  *value = round + (x == 0 && turns < 0 ? 1 : 0);
}

__global__ void Copy(const int* from, int* to) { *to = *from; }

int main() {
  int *value, *copied;
  CHECK(cudaMalloc(&value, sizeof(int)));
  CHECK(cudaMalloc(&copied, sizeof(int)));
  CHECK(cudaMemset(value, 0, sizeof(int)));
  cudaStream_t recording, waiting;
  CHECK(cudaStreamCreateWithFlags(&recording, cudaStreamNonBlocking));
  CHECK(cudaStreamCreateWithFlags(&waiting, cudaStreamNonBlocking));
  cudaEvent_t event;
  CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  WriteLate<<<1, 1, 0, recording>>>(value, 0, 1);
  Copy<<<1, 1, 0, waiting>>>(value, copied);
  CHECK(cudaDeviceSynchronize());

  std::atomic<int> recorded{0}, checked{0};
  std::thread a([&] {
    for (int round = 1; round <= kRounds; ++round) {
      WriteLate<<<1, 1, 0, recording>>>(value, round, 2000);
      CHECK(cudaEventRecord(event, recording));
      recorded = round;
      while (checked < round) std::this_thread::yield();
    }
  });
  std::thread b([&] {
    for (int round = 1; round <= kRounds; ++round) {
      while (recorded < round) std::this_thread::yield();
      if (round % 3 == 0) {
        CHECK(cudaEventSynchronize(event));
      } else if (round % 3 == 1) {
        CHECK(cudaStreamWaitEvent(waiting, event, 0));
      } else {
        cudaError_t state;
        while ((state = cudaEventQuery(event)) == cudaErrorNotReady) std::this_thread::yield();
        CHECK(state);
      }
      Copy<<<1, 1, 0, waiting>>>(value, copied);
      int seen = -1;
      CHECK(cudaMemcpyAsync(&seen, copied, sizeof seen, cudaMemcpyDeviceToHost, waiting));
      CHECK(cudaStreamSynchronize(waiting));
      EXPECT(seen == round, "in round %d the value was %d", round, seen);
      checked = round;
    }
  });
  a.join();
  b.join();
  CHECK(cudaEventDestroy(event));
  return Pass("event_threads");
}
