// Memory that a graph frees and allocates again within a launch, mostly at the same address, and
// that outlives the launch: it is freed by cudaFree, in a stream and by another graph, and only
// then can the graph be launched again.
#include <vector>

#include "check.h"

constexpr int kCount = 4096, kThreads = 128;
constexpr size_t kBytes = kCount * sizeof(int);

__global__ void Fill(int* values, int value) {
  values[blockIdx.x * blockDim.x + threadIdx.x] = value;
}

static cudaGraphNode_t AddFill(cudaGraph_t graph, cudaGraphNode_t after, void* values, int value) {
  cudaKernelNodeParams fill = {};
  void* arguments[] = {&values, &value};
  fill.func = reinterpret_cast<void*>(Fill);
  fill.gridDim = dim3(kCount / kThreads);
  fill.blockDim = dim3(kThreads);
  fill.kernelParams = arguments;
  cudaGraphNode_t node;
  CHECK(cudaGraphAddKernelNode(&node, graph, &after, 1, &fill));
  return node;
}

static cudaGraphNode_t AddAllocation(cudaGraph_t graph, const cudaGraphNode_t* after,
                                     void** where) {
  cudaMemAllocNodeParams memory = {};
  memory.poolProps.allocType = cudaMemAllocationTypePinned;
  memory.poolProps.location.type = cudaMemLocationTypeDevice;
  memory.bytesize = kBytes;
  cudaGraphNode_t node;
  CHECK(cudaGraphAddMemAllocNode(&node, graph, after, after != nullptr, &memory));
  *where = memory.dptr;
  return node;
}

// `rounds` allocations one behind the other, of which the last stays.
static cudaGraph_t Make(int rounds, void** left) {
  cudaGraph_t graph;
  CHECK(cudaGraphCreate(&graph, 0));
  cudaGraphNode_t last = nullptr;
  for (int i = 0; i < rounds; ++i) {
    last = AddAllocation(graph, i == 0 ? nullptr : &last, left);
    last = AddFill(graph, last, *left, i);
    if (i + 1 == rounds) break;
    cudaGraphNode_t freed;
    CHECK(cudaGraphAddMemFreeNode(&freed, graph, &last, 1, *left));
    last = freed;
  }
  return graph;
}

// The same as a stream's capture.
static cudaGraph_t Capture(int rounds, void** left, cudaStream_t stream) {
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  for (int i = 0; i < rounds; ++i) {
    CHECK(cudaMallocAsync(left, kBytes, stream));
    Fill<<<kCount / kThreads, kThreads, 0, stream>>>(static_cast<int*>(*left), i);
    if (i + 1 < rounds) CHECK(cudaFreeAsync(*left, stream));
  }
  cudaGraph_t graph;
  CHECK(cudaStreamEndCapture(stream, &graph));
  return graph;
}

enum Way { kFree, kInStream, kOtherGraph, kWays };

static void Free(Way way, void* memory, cudaStream_t stream) {
  if (way == kFree) {
    CHECK(cudaFree(memory));
  } else if (way == kInStream) {
    CHECK(cudaFreeAsync(memory, stream));
  } else {
    cudaGraph_t other;
    cudaGraphNode_t node;
    cudaGraphExec_t exec;
    CHECK(cudaGraphCreate(&other, 0));
    CHECK(cudaGraphAddMemFreeNode(&node, other, nullptr, 0, memory));
    CHECK(cudaGraphInstantiate(&exec, other, 0));
    CHECK(cudaGraphLaunch(exec, stream));
    CHECK(cudaStreamSynchronize(stream));
    CHECK(cudaGraphExecDestroy(exec));
    CHECK(cudaGraphDestroy(other));
  }
}

static void Try(int rounds, bool captured, cudaStream_t stream) {
  void* left = nullptr;
  cudaGraph_t graph = captured ? Capture(rounds, &left, stream) : Make(rounds, &left);
  cudaGraphExec_t exec;
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  for (int way = 0; way < kWays; ++way) {
    CHECK(cudaGraphLaunch(exec, stream));
    CHECK(cudaStreamSynchronize(stream));
    std::vector<int> found(kCount, -1);
    CHECK(cudaMemcpy(found.data(), left, kBytes, cudaMemcpyDeviceToHost));
    for (int i = 0; i < kCount; ++i) {
      EXPECT(found[i] == rounds - 1, "%d allocations: element %d is %d", rounds, i, found[i]);
    }
    const cudaError_t again = cudaGraphLaunch(exec, stream);
    EXPECT(again == cudaErrorInvalidValue, "launched with its memory unfreed: %d", again);
    cudaGetLastError();
    Free(static_cast<Way>(way), left, stream);
    CHECK(cudaStreamSynchronize(stream));
  }
  const cudaError_t twice = cudaFreeAsync(left, stream);
  EXPECT(twice == cudaErrorInvalidValue, "freed twice: %d", twice);
  cudaGetLastError();
  CHECK(cudaGraphExecDestroy(exec));
  CHECK(cudaGraphDestroy(graph));
}

int main() {
  cudaStream_t stream;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  for (int rounds = 1; rounds <= 3; ++rounds) {
    Try(rounds, false, stream);
    Try(rounds, true, stream);
  }
  CHECK(cudaStreamDestroy(stream));
  return Pass("graph_memory");
}
