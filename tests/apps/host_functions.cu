// Host functions run in their place on the stream: after the bytes of earlier copies landed,
// before later work starts; and they may wait for another thread of the program.
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "check.h"

constexpr int kCount = 1024, kRounds = 20;

__global__ void Fill(int* values, int value) {
  values[blockIdx.x * blockDim.x + threadIdx.x] = value;
}

struct Round {
  const int* landed;
  int expected;
  std::atomic<int>* finished;
  int finished_before;
  bool right;
};

static void CUDART_CB LookAtBytes(void* argument) {
  Round* round = static_cast<Round*>(argument);
  round->right = true;
  for (int i = 0; i < kCount; ++i)
    round->right = round->right && round->landed[i] == round->expected;
  round->finished_before = (*round->finished)++;
}

struct Gate {
  std::atomic<bool> open{false}, entered{false};
};

static void CUDART_CB WaitForGate(void* argument) {
  Gate* gate = static_cast<Gate*>(argument);
  gate->entered = true;
  while (!gate->open) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

int main() {
  cudaStream_t stream, other;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  CHECK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
  int *values, *landed, *other_values;
  CHECK(cudaMalloc(&values, kCount * sizeof(int)));
  CHECK(cudaMalloc(&other_values, kCount * sizeof(int)));
  CHECK(cudaMallocHost(&landed, kCount * sizeof(int)));
  Fill<<<kCount / 128, 128, 0, other>>>(other_values, 0);
  CHECK(cudaStreamSynchronize(other));

  std::atomic<int> finished{0};
  std::vector<Round> rounds(kRounds);
  for (int i = 0; i < kRounds; ++i) {
    rounds[i] = {landed, i * 17 + 1, &finished, -1, false};
    Fill<<<kCount / 128, 128, 0, stream>>>(values, i * 17 + 1);
    CHECK(cudaMemcpyAsync(landed, values, kCount * sizeof(int), cudaMemcpyDeviceToHost, stream));
    CHECK(cudaLaunchHostFunc(stream, LookAtBytes, &rounds[i]));
  }
  CHECK(cudaStreamSynchronize(stream));
  for (int i = 0; i < kRounds; ++i) {
    EXPECT(rounds[i].right, "host function %d saw other bytes than its copy's", i);
    EXPECT(rounds[i].finished_before == i, "host function %d ran as number %d", i,
           rounds[i].finished_before);
  }

  // The work behind a waiting host function must wait; the other stream must not.
  Gate gate;
  CHECK(cudaMemsetAsync(values, 0, kCount * sizeof(int), stream));
  CHECK(cudaLaunchHostFunc(stream, WaitForGate, &gate));
  Fill<<<kCount / 128, 128, 0, stream>>>(values, 99);
  Fill<<<kCount / 128, 128, 0, other>>>(other_values, 5);
  CHECK(cudaStreamSynchronize(other));
  while (!gate.entered) std::this_thread::yield();
  EXPECT(cudaStreamQuery(stream) == cudaErrorNotReady, "the stream passed a waiting host function");
  int first = -1;
  CHECK(cudaMemcpyAsync(&first, values, sizeof first, cudaMemcpyDeviceToHost, other));
  CHECK(cudaStreamSynchronize(other));
  EXPECT(first == 0, "the kernel behind the host function has run: %d", first);
  std::thread opener([&gate] { gate.open = true; });
  CHECK(cudaStreamSynchronize(stream));
  opener.join();
  CHECK(cudaMemcpy(&first, values, sizeof first, cudaMemcpyDeviceToHost));
  EXPECT(first == 99, "the kernel behind the host function gave %d", first);
  return Pass("host_functions");
}
