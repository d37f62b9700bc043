// Host functions run in their place on the stream: after the bytes of earlier copies landed,
// before later work starts; they may wait for another thread of the program, and ask for events.
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

struct Events {
  cudaEvent_t before, after;
  cudaError_t before_says, after_says, allocation_says;
};

static void CUDART_CB AskForEvents(void* argument) {
  Events* events = static_cast<Events*>(argument);
  events->before_says = cudaEventQuery(events->before);
  events->after_says = cudaEventQuery(events->after);
  void* memory = nullptr;
  events->allocation_says = cudaMalloc(&memory, 16);
}

// A host function may ask for the events around it, but not for memory.
static void AskAmongEvents(cudaStream_t stream, int* values) {
  Events events = {};
  CHECK(cudaEventCreate(&events.before));
  CHECK(cudaEventCreate(&events.after));
  CHECK(cudaEventRecord(events.before, stream));
  Gate gate;
  CHECK(cudaLaunchHostFunc(stream, WaitForGate, &gate));
  CHECK(cudaLaunchHostFunc(stream, AskForEvents, &events));
  Fill<<<kCount / 128, 128, 0, stream>>>(values, 1);
  CHECK(cudaEventRecord(events.after, stream));
  gate.open = true;
  CHECK(cudaStreamSynchronize(stream));
  EXPECT(events.before_says == cudaSuccess, "the event before gave %d", events.before_says);
  EXPECT(events.after_says == cudaErrorNotReady, "the event after gave %d", events.after_says);
  EXPECT(events.allocation_says == cudaErrorNotPermitted, "memory gave %d", events.allocation_says);
  CHECK(cudaEventDestroy(events.before));
  CHECK(cudaEventDestroy(events.after));
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
  AskAmongEvents(stream, values);
  return Pass("host_functions");
}
