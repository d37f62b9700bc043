// Graphs built with the runtime's own calls: copies from and to host memory, also by symbol and
// with the kind left open, host functions, events, and memory that the graph allocates.
#include <vector>

#include "check.h"

constexpr int kCount = 1024, kThreads = 128;
constexpr size_t kBytes = kCount * sizeof(int);

__device__ int factors[kCount];

__global__ void Multiply(const int* input, int* output) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  output[i] = input[i] * factors[i];
}

static void CUDART_CB AddOne(void* data) { ++*static_cast<int*>(data); }

// A host function by the call that takes any kind of node: one launch now runs two of them.
static void AddAnyKind(cudaGraph_t graph, int* runs, cudaStream_t stream) {
  int before = *runs;
  cudaGraphNodeParams any = {};
  any.type = cudaGraphNodeTypeHost;
  any.host.fn = AddOne;
  any.host.userData = runs;
  cudaGraphNode_t added;
  CHECK(cudaGraphAddNode(&added, graph, nullptr, nullptr, 0, &any));
  cudaGraphExec_t exec;
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  CHECK(cudaGraphLaunch(exec, stream));
  CHECK(cudaStreamSynchronize(stream));
  EXPECT(*runs == before + 2, "the host functions ran %d times", *runs - before);
  CHECK(cudaGraphExecDestroy(exec));
}

int main() {
  std::vector<int> input(kCount), by(kCount), output(kCount), second(kCount);
  for (int i = 0; i < kCount; ++i) {
    input[i] = i;
    by[i] = 3;
  }
  int* device = nullptr;
  CHECK(cudaMalloc(&device, kBytes));
  cudaGraph_t graph;
  CHECK(cudaGraphCreate(&graph, 0));
  cudaGraphNode_t ready[3], kernel, download, host, record, freed;
  CHECK(cudaGraphAddMemcpyNode1D(&ready[0], graph, nullptr, 0, device, input.data(), kBytes,
                                 cudaMemcpyDefault));
  CHECK(cudaGraphAddMemcpyNodeToSymbol(&ready[1], graph, nullptr, 0, factors, by.data(), kBytes, 0,
                                       cudaMemcpyHostToDevice));
  cudaMemAllocNodeParams memory = {};
  memory.poolProps.allocType = cudaMemAllocationTypePinned;
  memory.poolProps.location.type = cudaMemLocationTypeDevice;
  memory.bytesize = kBytes;
  CHECK(cudaGraphAddMemAllocNode(&ready[2], graph, nullptr, 0, &memory));
  void* arguments[] = {&device, &memory.dptr};
  cudaKernelNodeParams multiply = {};
  multiply.func = reinterpret_cast<void*>(Multiply);
  multiply.gridDim = dim3(kCount / kThreads);
  multiply.blockDim = dim3(kThreads);
  multiply.kernelParams = arguments;
  CHECK(cudaGraphAddKernelNode(&kernel, graph, ready, 3, &multiply));
  CHECK(cudaGraphAddMemcpyNode1D(&download, graph, &kernel, 1, output.data(), memory.dptr, kBytes,
                                 cudaMemcpyDeviceToHost));
  CHECK(cudaGraphAddMemFreeNode(&freed, graph, &download, 1, memory.dptr));
  int runs = 0;
  cudaHostNodeParams function = {};
  function.fn = AddOne;
  function.userData = &runs;
  CHECK(cudaGraphAddHostNode(&host, graph, &download, 1, &function));
  cudaEvent_t event;
  CHECK(cudaEventCreate(&event));
  CHECK(cudaGraphAddEventRecordNode(&record, graph, &host, 1, event));

  cudaGraphExec_t exec;
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  cudaStream_t stream;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  for (int launch = 1; launch <= 3; ++launch) {
    by[7] = 100 * launch;
    CHECK(cudaGraphLaunch(exec, stream));
    CHECK(cudaEventSynchronize(event));
    EXPECT(runs == launch, "the host function ran %d times", runs);
    for (int i = 0; i < kCount; ++i) {
      EXPECT(output[i] == input[i] * by[i], "element %d is %d", i, output[i]);
    }
  }
  CHECK(cudaGraphExecMemcpyNodeSetParams1D(exec, download, second.data(), memory.dptr, kBytes,
                                           cudaMemcpyDeviceToHost));
  CHECK(cudaGraphLaunch(exec, stream));
  CHECK(cudaStreamSynchronize(stream));
  EXPECT(second == output, "the changed copy wrote something else");
  CHECK(cudaGraphExecDestroy(exec));
  AddAnyKind(graph, &runs, stream);
  CHECK(cudaGraphDestroy(graph));
  return Pass("graph_runtime_nodes");
}
