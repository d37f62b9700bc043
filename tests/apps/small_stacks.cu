// Threads with little stack use the device: launches, also with many parameters, copies, memory,
// graphs and events. A driver's caller need not have more.
#include <limits.h>
#include <pthread.h>

#include <vector>

#include "check.h"

constexpr int kThreads = 8;
constexpr size_t kStack = 40 << 10;  // with the thread-local variables of all libraries

struct Many {
  int values[7000];  // 28,000 bytes, where 32,764 may be
};

__global__ void Add(int* sum, int value) { atomicAdd(sum, value); }

__global__ void AddLast(int* sum, const __grid_constant__ Many many) {
  atomicAdd(sum, many.values[6999]);
}

static Many* many = new Many{};

static void* UseDevice(void* index) {
  const int value = static_cast<int>(reinterpret_cast<size_t>(index));
  cudaStream_t stream;
  cudaEvent_t event;
  int *sum = nullptr, *pinned = nullptr;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  CHECK(cudaEventCreate(&event));
  CHECK(cudaMallocAsync(&sum, sizeof(*sum), stream));
  CHECK(cudaMallocHost(&pinned, sizeof(*pinned)));
  CHECK(cudaMemsetAsync(sum, 0, sizeof(*sum), stream));
  for (int i = 0; i < 10; ++i) Add<<<1, 32, 0, stream>>>(sum, value);
  void* arguments[] = {&sum, many};
  CHECK(cudaLaunchKernel(AddLast, 1, 1, arguments, 0, stream));
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  Add<<<1, 1, 0, stream>>>(sum, 1000);
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  CHECK(cudaStreamEndCapture(stream, &graph));
  CHECK(cudaGraphInstantiate(&exec, graph));
  CHECK(cudaGraphLaunch(exec, stream));
  CHECK(cudaMemcpyAsync(pinned, sum, sizeof(*sum), cudaMemcpyDefault, stream));
  CHECK(cudaEventRecord(event, stream));
  CHECK(cudaEventSynchronize(event));
  int copied = 0;
  CHECK(cudaMemcpy(&copied, sum, sizeof(copied), cudaMemcpyDefault));
  EXPECT(*pinned == copied && copied == 320 * value + 77 + 1000, "%d, %d", *pinned, copied);
  CHECK(cudaFreeAsync(sum, stream));
  CHECK(cudaFreeHost(pinned));
  CHECK(cudaGraphExecDestroy(exec));
  CHECK(cudaGraphDestroy(graph));
  CHECK(cudaEventDestroy(event));
  CHECK(cudaStreamDestroy(stream));
  return nullptr;
}

int main() {
  many->values[6999] = 77;
  CHECK(cudaFree(nullptr));
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kStack);
  std::vector<pthread_t> threads(kThreads);
  for (size_t i = 0; i < kThreads; ++i) {
    EXPECT(pthread_create(&threads[i], &attributes, UseDevice, reinterpret_cast<void*>(i)) == 0,
           "no thread");
  }
  for (pthread_t thread : threads) pthread_join(thread, nullptr);
  return Pass("small_stacks");
}
