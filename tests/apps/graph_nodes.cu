// A graph built node by node: memset and kernel nodes in a diamond; parameters are read back,
// changed in the graph and in an executable, and the two do not mix.
#include <vector>

#include "check.h"

constexpr int kCount = 4096, kThreads = 128;

__global__ void AddTo(int* values, int amount, long long scale) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  values[i] += static_cast<int>(amount * scale) + i;
}

__global__ void Sum(const int* a, const int* b, int* sum) {
  extern __shared__ int shared[];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  shared[threadIdx.x] = a[i];
  __syncthreads();
  sum[i] = shared[threadIdx.x] + b[i];
}

struct AddArguments {
  int* values;
  int amount;
  long long scale;
  void* pointers[3] = {&values, &amount, &scale};

  cudaKernelNodeParams Node() {
    cudaKernelNodeParams node = {};
    node.func = reinterpret_cast<void*>(AddTo);
    node.gridDim = dim3(kCount / kThreads);
    node.blockDim = dim3(kThreads);
    node.kernelParams = pointers;
    return node;
  }
};

static cudaGraphNode_t AddMemset(cudaGraph_t graph, int* to) {
  cudaMemsetParams zero = {};
  zero.dst = to;
  zero.elementSize = 4;
  zero.value = 0;
  zero.width = kCount;
  zero.height = 1;
  cudaGraphNode_t node;
  CHECK(cudaGraphAddMemsetNode(&node, graph, nullptr, 0, &zero));
  return node;
}

static void ExpectSums(cudaGraphExec_t exec, const int* sum, int amounts) {
  CHECK(cudaGraphLaunch(exec, nullptr));
  std::vector<int> host(kCount);
  CHECK(cudaMemcpy(host.data(), sum, kCount * sizeof(int), cudaMemcpyDeviceToHost));
  for (int i = 0; i < kCount; ++i) {
    EXPECT(host[i] == amounts + 2 * i, "element %d is %d, not %d", i, host[i], amounts + 2 * i);
  }
}

int main() {
  int *a, *b, *sum;
  for (int** place : {&a, &b, &sum}) CHECK(cudaMalloc(place, kCount * sizeof(int)));
  cudaGraph_t graph;
  CHECK(cudaGraphCreate(&graph, 0));
  AddArguments first{a, 10, 3}, second{b, 5, 1};
  cudaGraphNode_t zero_a = AddMemset(graph, a), zero_b = AddMemset(graph, b);
  cudaGraphNode_t branches[2], join;
  cudaKernelNodeParams node = first.Node();
  CHECK(cudaGraphAddKernelNode(&branches[0], graph, &zero_a, 1, &node));
  node = second.Node();
  CHECK(cudaGraphAddKernelNode(&branches[1], graph, &zero_b, 1, &node));
  void* sum_arguments[] = {&a, &b, &sum};
  cudaKernelNodeParams sum_node = {};
  sum_node.func = reinterpret_cast<void*>(Sum);
  sum_node.gridDim = dim3(kCount / kThreads);
  sum_node.blockDim = dim3(kThreads);
  sum_node.sharedMemBytes = kThreads * sizeof(int);
  sum_node.kernelParams = sum_arguments;
  CHECK(cudaGraphAddKernelNode(&join, graph, branches, 2, &sum_node));

  size_t nodes = 0;
  CHECK(cudaGraphGetNodes(graph, nullptr, &nodes));
  EXPECT(nodes == 5, "the graph has %zu nodes", nodes);
  cudaGraphNodeType type;
  CHECK(cudaGraphNodeGetType(join, &type));
  EXPECT(type == cudaGraphNodeTypeKernel, "the node is of type %d", type);
  cudaGraphExec_t exec;
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  ExpectSums(exec, sum, 35);

  cudaKernelNodeParams told = {};
  CHECK(cudaGraphKernelNodeGetParams(branches[0], &told));
  EXPECT(told.gridDim.x == kCount / kThreads && told.blockDim.x == kThreads, "the shape is %u x %u",
         told.gridDim.x, told.blockDim.x);
  EXPECT(*static_cast<int**>(told.kernelParams[0]) == a, "the first parameter is another");
  EXPECT(*static_cast<int*>(told.kernelParams[1]) == 10, "the second parameter is %d",
         *static_cast<int*>(told.kernelParams[1]));
  EXPECT(*static_cast<long long*>(told.kernelParams[2]) == 3, "the third parameter is another");

  // In the executable only.
  AddArguments changed{b, 100, 1};
  node = changed.Node();
  CHECK(cudaGraphExecKernelNodeSetParams(exec, branches[1], &node));
  ExpectSums(exec, sum, 130);
  // In the graph only: the next executable has it.
  AddArguments later{a, 1, 1};
  node = later.Node();
  CHECK(cudaGraphKernelNodeSetParams(branches[0], &node));
  ExpectSums(exec, sum, 130);
  CHECK(cudaGraphExecDestroy(exec));
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  ExpectSums(exec, sum, 6);

  // Refused as natively: more threads than a block can have.
  node.blockDim = dim3(4096);
  cudaGraphNode_t wrong;
  EXPECT(cudaGraphAddKernelNode(&wrong, graph, nullptr, 0, &node) != cudaSuccess,
         "a block of 4,096 threads was taken");
  cudaGetLastError();
  CHECK(cudaGraphExecDestroy(exec));
  CHECK(cudaGraphDestroy(graph));
  return Pass("graph_nodes");
}
