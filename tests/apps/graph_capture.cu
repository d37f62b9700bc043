// Captures copies, kernels on two streams and a host function, and replays them. Host memory in a
// graph is read again at every launch.
#include <vector>

#include "check.h"

constexpr int kCount = 2048, kReplays = 5;

__global__ void Scale(const int* input, int* output, int factor) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  output[i] = input[i] * factor;
}

__global__ void Combine(const int* a, const int* b, int* sum, int* runs) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  sum[i] = a[i] + b[i];
  if (i == 0) ++*runs;
}

struct HostNode {
  const int* result;
  int calls = 0;
  long long sum = 0;
};

static void CUDART_CB SumOnHost(void* argument) {
  HostNode* node = static_cast<HostNode*>(argument);
  ++node->calls;
  node->sum = 0;
  for (int i = 0; i < kCount; ++i) node->sum += node->result[i];
}

__global__ void Mark(int* mark) { *mark = 1; }

// A branch that does not come back makes the end of the capture fail, and what was handed to it
// does not run: also if its kernel is yet to be loaded when the capture ends.
static void TestBranchLeftOpen(cudaStream_t stream, cudaStream_t branch, cudaEvent_t fork) {
  int *mark, value = 0;
  CHECK(cudaMalloc(&mark, sizeof *mark));
  CHECK(cudaMemset(mark, 0, sizeof *mark));
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  CHECK(cudaEventRecord(fork, stream));
  CHECK(cudaStreamWaitEvent(branch, fork, 0));
  Mark<<<1, 1, 0, branch>>>(mark);
  cudaGraph_t graph = nullptr;
  cudaError_t end = cudaStreamEndCapture(stream, &graph);
  EXPECT(end == cudaErrorStreamCaptureUnjoined, "the end of the capture gave %d", end);
  (void)cudaGetLastError();
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaMemcpy(&value, mark, sizeof value, cudaMemcpyDeviceToHost));
  EXPECT(value == 0, "a captured kernel ran");
  CHECK(cudaFree(mark));
}

// What the legacy stream was given before is out of a blocking stream's way when its capture
// begins, though the copy still runs.
static void TestCaptureBehindCopies() {
  constexpr size_t kBytes = 8 << 20;
  std::vector<char> pageable(kBytes);
  char *pinned, *to;
  int* mark;
  cudaStream_t blocking;
  CHECK(cudaMallocHost(&pinned, kBytes));
  CHECK(cudaMalloc(&to, kBytes));
  CHECK(cudaMalloc(&mark, sizeof *mark));
  CHECK(cudaStreamCreate(&blocking));
  for (int round = 0; round < 20; ++round) {
    const char* from = round % 2 == 0 ? pinned : pageable.data();
    CHECK(cudaMemcpyAsync(to, from, kBytes >> round % 4, cudaMemcpyHostToDevice));
    CHECK(cudaStreamBeginCapture(blocking, cudaStreamCaptureModeThreadLocal));
    Mark<<<1, 1, 0, blocking>>>(mark);
    CHECK(cudaGetLastError());
    cudaGraph_t graph;
    CHECK(cudaStreamEndCapture(blocking, &graph));
    CHECK(cudaGraphDestroy(graph));
  }
  CHECK(cudaStreamDestroy(blocking));
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaFree(mark));
  CHECK(cudaFree(to));
  CHECK(cudaFreeHost(pinned));
}

int main() {
  const size_t bytes = kCount * sizeof(int);
  int *input, *output, *device, *tripled, *quintupled, *sum, *runs;
  CHECK(cudaMallocHost(&input, bytes));
  CHECK(cudaMallocHost(&output, bytes));
  for (int** array : {&device, &tripled, &quintupled, &sum}) CHECK(cudaMalloc(array, bytes));
  CHECK(cudaMalloc(&runs, sizeof(int)));
  CHECK(cudaMemset(runs, 0, sizeof(int)));
  HostNode node{output};
  cudaStream_t stream, branch;
  cudaEvent_t fork, join;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  CHECK(cudaStreamCreateWithFlags(&branch, cudaStreamNonBlocking));
  CHECK(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming));
  CHECK(cudaEventCreateWithFlags(&join, cudaEventDisableTiming));
  CHECK(cudaDeviceSynchronize());

  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  CHECK(cudaMemcpyAsync(device, input, bytes, cudaMemcpyHostToDevice, stream));
  CHECK(cudaEventRecord(fork, stream));
  CHECK(cudaStreamWaitEvent(branch, fork, 0));
  Scale<<<kCount / 128, 128, 0, stream>>>(device, tripled, 3);
  Scale<<<kCount / 128, 128, 0, branch>>>(device, quintupled, 5);
  CHECK(cudaEventRecord(join, branch));
  CHECK(cudaStreamWaitEvent(stream, join, 0));
  Combine<<<kCount / 128, 128, 0, stream>>>(tripled, quintupled, sum, runs);
  CHECK(cudaMemcpyAsync(output, sum, bytes, cudaMemcpyDeviceToHost, stream));
  CHECK(cudaLaunchHostFunc(stream, SumOnHost, &node));
  cudaStreamCaptureStatus status;
  CHECK(cudaStreamIsCapturing(branch, &status));
  EXPECT(status == cudaStreamCaptureStatusActive, "the branch's capture status is %d", status);
  cudaGraph_t graph;
  CHECK(cudaStreamEndCapture(stream, &graph));
  size_t nodes = 0;
  CHECK(cudaGraphGetNodes(graph, nullptr, &nodes));
  EXPECT(nodes == 6, "the graph has %zu nodes", nodes);
  cudaGraphExec_t executable;
  CHECK(cudaGraphInstantiate(&executable, graph, 0));

  for (int replay = 1; replay <= kReplays; ++replay) {
    long long expected = 0;
    for (int i = 0; i < kCount; ++i) {
      input[i] = i * replay + 1;
      expected += 8 * input[i];
    }
    CHECK(cudaGraphLaunch(executable, stream));
    CHECK(cudaStreamSynchronize(stream));
    for (int i = 0; i < kCount; ++i) {
      EXPECT(output[i] == 8 * input[i], "replay %d, element %d is %d", replay, i, output[i]);
    }
    EXPECT(node.calls == replay, "the host node ran %d times, not %d", node.calls, replay);
    EXPECT(node.sum == expected, "the host node saw %lld, not %lld", node.sum, expected);
  }
  int counted = 0;
  CHECK(cudaMemcpy(&counted, runs, sizeof counted, cudaMemcpyDeviceToHost));
  EXPECT(counted == kReplays, "the kernels ran %d times", counted);
  CHECK(cudaGraphExecDestroy(executable));
  CHECK(cudaGraphDestroy(graph));
  TestBranchLeftOpen(stream, branch, fork);
  TestCaptureBehindCopies();
  return Pass("graph_capture");
}
