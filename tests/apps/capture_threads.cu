// While one thread captures in thread-local mode, another's allocations, event queries and
// synchronizes stay legal; in the capturing thread a synchronize of the stream is refused.
#include <atomic>
#include <thread>

#include "check.h"

__global__ void AddOne(int* value) { *value += 1; }

static std::atomic<bool> capturing{false}, stop{false};

static void BesideTheCapture(int* rounds) {
  cudaStream_t stream;
  cudaEvent_t event;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  while (!capturing) std::this_thread::yield();
  while (!stop) {
    int* memory;
    CHECK(cudaMalloc(&memory, sizeof(int)));
    CHECK(cudaMemsetAsync(memory, 0, sizeof(int), stream));
    AddOne<<<1, 1, 0, stream>>>(memory);
    CHECK(cudaEventRecord(event, stream));
    cudaError_t state = cudaEventQuery(event);
    EXPECT(state == cudaSuccess || state == cudaErrorNotReady, "event query gave %d", state);
    CHECK(cudaStreamSynchronize(stream));
    CHECK(cudaEventQuery(event));
    int value = 0;
    CHECK(cudaMemcpyAsync(&value, memory, sizeof value, cudaMemcpyDeviceToHost, stream));
    CHECK(cudaStreamSynchronize(stream));
    EXPECT(value == 1, "value %d", value);
    CHECK(cudaFree(memory));
    ++*rounds;
  }
  CHECK(cudaStreamDestroy(stream));
}

int main() {
  int* counter;
  CHECK(cudaMalloc(&counter, sizeof(int)));
  CHECK(cudaMemset(counter, 0, sizeof(int)));
  AddOne<<<1, 1>>>(counter);
  CHECK(cudaDeviceSynchronize());
  int rounds = 0;
  std::thread beside(BesideTheCapture, &rounds);
  cudaStream_t stream;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  for (int i = 0; i < 5; ++i) {
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    capturing = true;
    for (int launch = 0; launch < 20; ++launch) AddOne<<<1, 1, 0, stream>>>(counter);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    cudaGraph_t graph;
    CHECK(cudaStreamEndCapture(stream, &graph));
    cudaGraphExec_t executable;
    CHECK(cudaGraphInstantiate(&executable, graph, 0));
    CHECK(cudaGraphLaunch(executable, stream));
    CHECK(cudaStreamSynchronize(stream));
    CHECK(cudaGraphExecDestroy(executable));
    CHECK(cudaGraphDestroy(graph));
  }
  stop = true;
  beside.join();
  EXPECT(rounds > 0, "the other thread never ran");

  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  cudaError_t refused = cudaStreamSynchronize(stream);
  EXPECT(refused == cudaErrorStreamCaptureUnsupported, "synchronize gave %d", refused);
  cudaGraph_t graph = nullptr;
  refused = cudaStreamEndCapture(stream, &graph);
  EXPECT(refused == cudaErrorStreamCaptureInvalidated, "end of capture gave %d", refused);
  (void)cudaGetLastError();

  int value = 0;
  CHECK(cudaMemcpy(&value, counter, sizeof value, cudaMemcpyDeviceToHost));
  EXPECT(value == 1 + 5 * 20, "the graphs' kernels ran %d times", value - 1);
  return Pass("capture_threads");
}
