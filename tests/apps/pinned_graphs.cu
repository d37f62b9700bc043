// Pinned memory that graphs and plain copies use in turn, in one stream: each sees what the one
// before it left there.
#include <cstring>
#include <vector>

#include "check.h"

constexpr int kCount = 30'000;
constexpr size_t kBytes = kCount * sizeof(int);

__global__ void Add(int* values, int what) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < kCount) values[i] += what;
}

static void LaunchAdd(int* values, int what, cudaStream_t stream) {
  Add<<<(kCount + 255) / 256, 256, 0, stream>>>(values, what);
  CHECK(cudaGetLastError());
}

static void ExpectAll(const int* values, int expected, const char* what) {
  for (int i = 0; i < kCount; ++i) {
    EXPECT(values[i] == expected, "%s: element %d is %d, not %d", what, i, values[i], expected);
  }
}

// Graphs fill pinned memory that nothing of the device has reached before.
static void FillByNode(cudaStream_t stream) {
  int *one, *other;
  CHECK(cudaMallocHost(&one, kBytes));
  CHECK(cudaMallocHost(&other, kBytes));
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  cudaGraphNode_t node;
  cudaMemsetParams fill = {one, 0, 7, sizeof(int), kCount, 1};
  CHECK(cudaGraphCreate(&graph, 0));
  CHECK(cudaGraphAddMemsetNode(&node, graph, nullptr, 0, &fill));
  CHECK(cudaGraphInstantiate(&exec, graph, nullptr, nullptr, 0));
  CHECK(cudaGraphLaunch(exec, stream));
  CHECK(cudaStreamSynchronize(stream));
  ExpectAll(one, 7, "what a node filled");
  fill.dst = other;
  CHECK(cudaGraphExecMemsetNodeSetParams(exec, node, &fill));
  CHECK(cudaGraphLaunch(exec, stream));
  CHECK(cudaStreamSynchronize(stream));
  ExpectAll(other, 7, "what a changed node filled");
  CHECK(cudaGraphExecDestroy(exec));
  CHECK(cudaGraphDestroy(graph));
  CHECK(cudaFreeHost(one));
  CHECK(cudaFreeHost(other));
}

// A copy that the program adds to the graph which a stream is capturing, behind what was captured.
static void AddCopy(cudaStream_t stream, void* to, const void* from) {
  cudaStreamCaptureStatus status;
  unsigned long long id = 0;
  cudaGraph_t graph = nullptr;
  const cudaGraphNode_t* after = nullptr;
  const cudaGraphEdgeData* edges = nullptr;
  size_t count = 0;
  cudaGraphNode_t added;
  CHECK(cudaStreamGetCaptureInfo(stream, &status, &id, &graph, &after, &edges, &count));
  CHECK(cudaGraphAddMemcpyNode1D(&added, graph, after, count, to, from, kBytes, cudaMemcpyDefault));
  CHECK(cudaStreamUpdateCaptureDependencies(stream, &added, nullptr, 1,
                                            cudaStreamSetCaptureDependencies));
}

// Bytes go down, within the program's memory, and up again, by copies of which some are captured
// and some are added by hand: each reads what the one before it has written.
static void MixCaptured(cudaStream_t stream, bool down_by_hand, bool up_by_hand) {
  int *pinned, *device;
  std::vector<int> pageable(kCount);
  CHECK(cudaMallocHost(&pinned, kBytes));
  CHECK(cudaMalloc(&device, kBytes));
  CHECK(cudaMemsetAsync(device, 0, kBytes, stream));
  std::memset(pinned, 0, kBytes);
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  LaunchAdd(device, 1, stream);
  if (down_by_hand) AddCopy(stream, pinned, device);
  if (!down_by_hand) {
    CHECK(cudaMemcpyAsync(pinned, device, kBytes, cudaMemcpyDeviceToHost, stream));
  }
  LaunchAdd(device, 100, stream);
  if (up_by_hand) {
    AddCopy(stream, pageable.data(), pinned);
    AddCopy(stream, device, pageable.data());
  } else {
    CHECK(cudaMemcpyAsync(device, pinned, kBytes, cudaMemcpyHostToDevice, stream));
  }
  CHECK(cudaStreamEndCapture(stream, &graph));
  CHECK(cudaGraphInstantiate(&exec, graph, nullptr, nullptr, 0));
  for (int round = 1; round <= 3; ++round) {
    CHECK(cudaGraphLaunch(exec, stream));
    CHECK(cudaStreamSynchronize(stream));
    ExpectAll(pinned, round, "what came down");
    if (up_by_hand) ExpectAll(pageable.data(), round, "what was copied within the host");
  }
  CHECK(cudaMemcpy(pinned, device, kBytes, cudaMemcpyDeviceToHost));
  ExpectAll(pinned, 3, "what went up again");
  CHECK(cudaGraphExecDestroy(exec));
  CHECK(cudaGraphDestroy(graph));
  CHECK(cudaFreeHost(pinned));
  CHECK(cudaFree(device));
}

// Copies within the program's memory, captured between one that brings the bytes and one that takes
// them on.
static void CaptureWithinHost(cudaStream_t stream) {
  int *pinned, *other, *device;
  CHECK(cudaMallocHost(&pinned, kBytes));
  CHECK(cudaMalloc(&device, kBytes));
  std::vector<int> pageable(kBytes / sizeof(int)), registered(kBytes / sizeof(int));
  CHECK(cudaHostRegister(registered.data(), kBytes, cudaHostRegisterDefault));
  CHECK(cudaMallocHost(&other, kBytes));
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  CHECK(cudaMemcpyAsync(pinned, device, kBytes, cudaMemcpyDeviceToHost, stream));
  CHECK(cudaMemcpyAsync(registered.data(), pinned, kBytes, cudaMemcpyHostToHost, stream));
  CHECK(cudaMemcpyAsync(pageable.data(), registered.data(), kBytes, cudaMemcpyHostToHost, stream));
  CHECK(cudaMemcpy2DAsync(other, 64, pageable.data(), 64, 64, kBytes / 64, cudaMemcpyHostToHost,
                          stream));
  CHECK(cudaMemcpyAsync(device, other, kBytes, cudaMemcpyHostToDevice, stream));
  LaunchAdd(device, 1, stream);
  CHECK(cudaStreamEndCapture(stream, &graph));
  CHECK(cudaGraphInstantiate(&exec, graph, nullptr, nullptr, 0));
  CHECK(cudaMemsetAsync(device, 0, kBytes, stream));
  for (int round = 0; round < 3; ++round) {
    std::memset(other, 0, kBytes);
    CHECK(cudaGraphLaunch(exec, stream));
    CHECK(cudaStreamSynchronize(stream));
    ExpectAll(registered.data(), round, "what a captured copy within the host wrote");
    ExpectAll(pageable.data(), round, "what the one behind it wrote");
    ExpectAll(other, round, "what rows wrote");
  }
  CHECK(cudaMemcpy(other, device, kBytes, cudaMemcpyDeviceToHost));
  ExpectAll(other, 3, "what went to the device");
  CHECK(cudaGraphExecDestroy(exec));
  CHECK(cudaGraphDestroy(graph));
  CHECK(cudaHostUnregister(registered.data()));
  CHECK(cudaFreeHost(pinned));
  CHECK(cudaFreeHost(other));
  CHECK(cudaFree(device));
}

int main() {
  int *shared, *result, *first, *second;
  CHECK(cudaMallocHost(&shared, kBytes));
  CHECK(cudaMallocHost(&result, kBytes));
  CHECK(cudaMalloc(&first, kBytes));
  CHECK(cudaMalloc(&second, kBytes));
  cudaStream_t stream;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));

  // Up from the shared memory, 1 more, down to it again.
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  CHECK(cudaMemcpyAsync(first, shared, kBytes, cudaMemcpyHostToDevice, stream));
  LaunchAdd(first, 1, stream);
  CHECK(cudaMemcpyAsync(shared, first, kBytes, cudaMemcpyDeviceToHost, stream));
  CHECK(cudaStreamEndCapture(stream, &graph));
  CHECK(cudaGraphInstantiate(&exec, graph, nullptr, nullptr, 0));

  for (int round = 0; round < 5; ++round) {
    CHECK(cudaMemsetAsync(second, 0, kBytes, stream));
    LaunchAdd(second, 100 * round, stream);
    // A plain copy, then the graph that reads what it wrote.
    CHECK(cudaMemcpyAsync(shared, second, kBytes, cudaMemcpyDeviceToHost, stream));
    CHECK(cudaGraphLaunch(exec, stream));
    // A plain copy of what the graph wrote.
    CHECK(cudaMemcpyAsync(second, shared, kBytes, cudaMemcpyHostToDevice, stream));
    LaunchAdd(second, 10, stream);
    CHECK(cudaMemcpyAsync(result, second, kBytes, cudaMemcpyDeviceToHost, stream));
    // And one over it: the graph's bytes must not come after these.
    CHECK(cudaGraphLaunch(exec, stream));
    CHECK(cudaMemcpyAsync(shared, second, kBytes, cudaMemcpyDeviceToHost, stream));
    CHECK(cudaStreamSynchronize(stream));
    ExpectAll(result, 100 * round + 11, "what the graph wrote");
    ExpectAll(shared, 100 * round + 11, "what was copied over it");
  }
  CHECK(cudaGraphExecDestroy(exec));
  CHECK(cudaGraphDestroy(graph));
  // While kernels reach none of the pinned memory: then copies go as the device's own.
  for (const bool down_by_hand : {false, true}) {
    for (const bool up_by_hand : {false, true}) MixCaptured(stream, down_by_hand, up_by_hand);
  }
  CaptureWithinHost(stream);
  FillByNode(stream);
  CaptureWithinHost(stream);
  CHECK(cudaStreamDestroy(stream));
  CHECK(cudaFreeHost(shared));
  CHECK(cudaFreeHost(result));
  CHECK(cudaFree(first));
  CHECK(cudaFree(second));
  return Pass("pinned_graphs");
}
