// Managed memory beside streams, events, copies, graphs and host functions, and memory that belongs
// to one stream while another one works.
#include <cuda_runtime.h>

#include <cstring>
#include <thread>
#include <vector>

#include "check.h"

constexpr int kCount = 2000;
constexpr size_t kBytes = kCount * sizeof(int);

__global__ void AddToAll(int* values, int amount) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < kCount) values[i] += amount;
}

__global__ void WaitForFlag(volatile int* flag, int* done) {
  while (*flag == 0) {
  }
  *done = 1;
}

static void Add(int* values, int amount, cudaStream_t stream) {
  AddToAll<<<(kCount + 255) / 256, 256, 0, stream>>>(values, amount);
}

static int* NewManaged(unsigned flags = cudaMemAttachGlobal) {
  int* values = nullptr;
  CHECK(cudaMallocManaged(&values, kBytes, flags));
  return values;
}

static void ExpectAll(const int* values, int expected, const char* what) {
  for (int i = 0; i < kCount; ++i) {
    EXPECT(values[i] == expected, "%s: element %d is %d, not %d", what, i, values[i], expected);
  }
}

static void EventsAndQueries(cudaStream_t one, cudaStream_t two) {
  int* values = NewManaged();
  std::memset(values, 0, kBytes);
  cudaEvent_t event;
  CHECK(cudaEventCreate(&event));
  Add(values, 1, one);
  CHECK(cudaEventRecord(event, one));
  CHECK(cudaStreamWaitEvent(two, event));
  Add(values, 10, two);
  CHECK(cudaEventRecord(event, two));
  CHECK(cudaEventSynchronize(event));
  ExpectAll(values, 11, "after an event");
  Add(values, 100, one);
  cudaError_t state;
  while ((state = cudaStreamQuery(one)) == cudaErrorNotReady) std::this_thread::yield();
  CHECK(state);
  ExpectAll(values, 111, "after a query");
  CHECK(cudaEventDestroy(event));
  CHECK(cudaFree(values));
}

// Every kind of copy, with managed memory on one side or both.
static void Copies(cudaStream_t stream) {
  int *a = NewManaged(), *b = NewManaged(), *device = nullptr;
  std::vector<int> host(kCount, 7);
  CHECK(cudaMalloc(&device, kBytes));
  CHECK(cudaMemcpy(a, host.data(), kBytes, cudaMemcpyHostToDevice));
  ExpectAll(a, 7, "from pageable memory");
  CHECK(cudaMemcpy(b, a, kBytes, cudaMemcpyDefault));
  ExpectAll(b, 7, "from managed memory");
  for (int i = 0; i < kCount; ++i) a[i] = 8;
  CHECK(cudaMemcpy(device, a, kBytes, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(b, device, kBytes, cudaMemcpyDeviceToHost));
  ExpectAll(b, 8, "through device memory");
  for (int i = 0; i < kCount; ++i) a[i] = 9;
  CHECK(cudaMemcpy(host.data(), a, kBytes, cudaMemcpyDeviceToHost));
  ExpectAll(host.data(), 9, "into pageable memory");
  CHECK(cudaMemset(a, 0, kBytes));
  ExpectAll(a, 0, "after a memset");
  a[kCount - 1] = 0;
  CHECK(cudaMemset2D(a, 400, 1, 40, 3));
  EXPECT(a[0] == 0x01010101 && a[10] == 0 && a[209] == 0x01010101 && a[210] == 0,
         "after a memset of rows: %d %d %d %d", a[0], a[10], a[209], a[210]);
  CHECK(cudaMemcpy2D(b, 40, a, 400, 40, 3, cudaMemcpyDefault));
  EXPECT(b[29] == 0x01010101 && b[30] == 8, "rows: %d %d", b[29], b[30]);
  CHECK(cudaMemcpyAsync(a, host.data(), kBytes, cudaMemcpyHostToDevice, stream));
  Add(a, 1, stream);
  CHECK(cudaMemcpyAsync(device, a, kBytes, cudaMemcpyDeviceToDevice, stream));
  CHECK(cudaMemcpyAsync(b, device, kBytes, cudaMemcpyDeviceToDevice, stream));
  CHECK(cudaStreamSynchronize(stream));
  ExpectAll(b, 10, "through a kernel");
  for (int* memory : {a, b, device}) CHECK(cudaFree(memory));
}

static void CUDART_CB AddOnHost(void* argument) {
  int* values = static_cast<int*>(argument);
  for (int i = 0; i < kCount; ++i) values[i] += 5;
}

static void GraphsAndFunctions(cudaStream_t stream) {
  int* values = NewManaged();
  std::memset(values, 0, kBytes);
  Add(values, 1, stream);
  CHECK(cudaLaunchHostFunc(stream, AddOnHost, values));
  Add(values, 1, stream);
  CHECK(cudaStreamSynchronize(stream));
  ExpectAll(values, 7, "kernel, function, kernel");
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  Add(values, 10, stream);
  CHECK(cudaLaunchHostFunc(stream, AddOnHost, values));
  Add(values, 10, stream);
  CHECK(cudaStreamEndCapture(stream, &graph));
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < kCount; ++i) values[i] = round;
    CHECK(cudaGraphLaunch(exec, stream));
    CHECK(cudaStreamSynchronize(stream));
    ExpectAll(values, round + 25, "after a graph");
  }
  CHECK(cudaGraphExecDestroy(exec));
  CHECK(cudaGraphDestroy(graph));
  CHECK(cudaFree(values));
}

// While one stream's kernel runs, memory of another stream and of the host is in use.
static void OfOneStream(cudaStream_t one, cudaStream_t two) {
  int *flag = nullptr, *done = nullptr;
  CHECK(cudaMalloc(&flag, sizeof(int)));
  CHECK(cudaMalloc(&done, sizeof(int)));
  CHECK(cudaMemset(flag, 0, sizeof(int)));
  CHECK(cudaMemset(done, 0, sizeof(int)));
  int *mine = NewManaged(), *hosts = NewManaged(cudaMemAttachHost);
  CHECK(cudaStreamAttachMemAsync(two, mine));
  CHECK(cudaStreamSynchronize(two));
  CHECK(cudaDeviceSynchronize());
  cudaStream_t writing;
  CHECK(cudaStreamCreateWithFlags(&writing, cudaStreamNonBlocking));
  WaitForFlag<<<1, 1, 0, one>>>(flag, done);
  std::memset(mine, 0, kBytes);
  for (int round = 1; round <= 3; ++round) {
    for (int i = 0; i < kCount; ++i) hosts[i] = mine[i] + round;
    for (int i = 0; i < kCount; ++i) mine[i] += hosts[i] - mine[i];
    Add(mine, 1, two);
    CHECK(cudaStreamSynchronize(two));
  }
  ExpectAll(mine, 9, "beside a running kernel");
  CHECK(cudaMemsetAsync(flag, 1, sizeof(int), writing));
  CHECK(cudaDeviceSynchronize());
  int value = 0;
  CHECK(cudaMemcpy(&value, done, sizeof value, cudaMemcpyDeviceToHost));
  EXPECT(value == 1, "the waiting kernel did not end well");
  CHECK(cudaStreamAttachMemAsync(two, hosts));
  Add(hosts, 1, two);
  CHECK(cudaStreamSynchronize(two));
  ExpectAll(hosts, 9, "attached later");
  for (int* memory : {mine, hosts, flag, done}) CHECK(cudaFree(memory));
  CHECK(cudaStreamDestroy(writing));
}

// What the program writes while other work runs is there for the next work, without a wait between.
static void BesideOtherWork(cudaStream_t one, cudaStream_t two) {
  int *flag = nullptr, *done = nullptr;
  CHECK(cudaMalloc(&flag, sizeof(int)));
  CHECK(cudaMalloc(&done, sizeof(int)));
  CHECK(cudaMemset(flag, 0, sizeof(int)));
  int *a = NewManaged(), *b = NewManaged();
  cudaStream_t writing;
  CHECK(cudaStreamCreateWithFlags(&writing, cudaStreamNonBlocking));
  CHECK(cudaDeviceSynchronize());
  WaitForFlag<<<1, 1, 0, one>>>(flag, done);
  for (int round = 1; round <= 3; ++round) {
    for (int i = 0; i < kCount; ++i) a[i] = round;
    Add(a, 10, two);
    for (int i = 0; i < kCount; ++i) b[i] = 2 * round;
    Add(b, 20, two);
    CHECK(cudaStreamSynchronize(two));
    ExpectAll(a, round + 10, "written beside a running kernel");
    ExpectAll(b, 2 * round + 20, "written behind a launch");
  }
  CHECK(cudaMemsetAsync(flag, 1, sizeof(int), writing));
  CHECK(cudaDeviceSynchronize());
  for (int* memory : {a, b, flag, done}) CHECK(cudaFree(memory));
  CHECK(cudaStreamDestroy(writing));
}

static void FreeWhileWorkRuns(cudaStream_t stream) {
  for (int round = 0; round < 20; ++round) {
    int *first = NewManaged(), *second = NewManaged();
    std::memset(first, 0, kBytes);
    std::memset(second, 0, kBytes);
    for (int i = 0; i < 10; ++i) Add(first, 1, stream);
    CHECK(cudaFree(first));
    Add(second, 3, stream);
    CHECK(cudaStreamSynchronize(stream));
    ExpectAll(second, 3, "beside memory that was freed");
    CHECK(cudaFree(second));
  }
}

int main() {
  cudaStream_t one, two;
  CHECK(cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking));
  CHECK(cudaStreamCreateWithFlags(&two, cudaStreamNonBlocking));
  EventsAndQueries(one, two);
  Copies(one);
  GraphsAndFunctions(one);
  OfOneStream(one, two);
  BesideOtherWork(one, two);
  FreeWhileWorkRuns(one);
  return Pass("managed_streams");
}
