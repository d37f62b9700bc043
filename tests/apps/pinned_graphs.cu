// Pinned memory that graphs and plain copies use in turn, in one stream: each sees what the one
// before it left there.
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
  FillByNode(stream);
  CHECK(cudaStreamDestroy(stream));
  CHECK(cudaFreeHost(shared));
  CHECK(cudaFreeHost(result));
  CHECK(cudaFree(first));
  CHECK(cudaFree(second));
  return Pass("pinned_graphs");
}
