// Conditional nodes: IF with and without ELSE, WHILE, SWITCH, one within the other; values that
// kernels set, and values that each launch begins with.
#include <cuda.h>

#include <vector>

#include "check.h"

// Counts up to `last`, then tells the loop to end.
__global__ void Count(cudaGraphConditionalHandle handle, int* counter, int last) {
  *counter += 1;
  if (handle != 0) cudaGraphSetConditional(handle, *counter < last);
}

__global__ void Choose(cudaGraphConditionalHandle handle, const int* value) {
  cudaGraphSetConditional(handle, static_cast<unsigned>(*value));
}

__global__ void Store(int* to, int value) { *to = value; }

template <class... Arguments>
static cudaGraphNode_t AddKernel(cudaGraph_t graph, const cudaGraphNode_t* after, void* function,
                                 Arguments... arguments) {
  void* pointers[] = {&arguments...};
  cudaGraphNodeParams params = {};
  params.type = cudaGraphNodeTypeKernel;
  params.kernel.func = function;
  params.kernel.gridDim = dim3(1);
  params.kernel.blockDim = dim3(1);
  params.kernel.kernelParams = pointers;
  cudaGraphNode_t node = nullptr;
  CHECK(cudaGraphAddNode(&node, graph, after, nullptr, after != nullptr, &params));
  return node;
}

static cudaGraph_t* AddConditional(cudaGraph_t graph, const cudaGraphNode_t* after,
                                   cudaGraphConditionalHandle handle,
                                   cudaGraphConditionalNodeType type, unsigned size,
                                   cudaGraphNode_t* node = nullptr) {
  cudaGraphNodeParams params = {};
  params.type = cudaGraphNodeTypeConditional;
  params.conditional.handle = handle;
  params.conditional.type = type;
  params.conditional.size = size;
  cudaGraphNode_t added = nullptr;
  CHECK(cudaGraphAddNode(&added, graph, after, nullptr, after != nullptr, &params));
  EXPECT(params.conditional.phGraph_out != nullptr, "no bodies");
  cudaGraphNodeType told = cudaGraphNodeTypeEmpty;
  CHECK(cudaGraphNodeGetType(added, &told));
  EXPECT(told == cudaGraphNodeTypeConditional, "type %d", told);
  if (node != nullptr) *node = added;
  return params.conditional.phGraph_out;
}

static int Read(const int* value) {
  int host = 0;
  CHECK(cudaMemcpy(&host, value, sizeof host, cudaMemcpyDeviceToHost));
  return host;
}

static void Write(int* value, int host) {
  CHECK(cudaMemcpy(value, &host, sizeof host, cudaMemcpyHostToDevice));
}

// A kernel chooses; the bodies store their number.
static void Chooses(int* values, cudaGraphConditionalNodeType type, unsigned size,
                    const std::vector<int>& expected) {
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  cudaGraphConditionalHandle handle = 0;
  CHECK(cudaGraphCreate(&graph, 0));
  CHECK(cudaGraphConditionalHandleCreate(&handle, graph, 0, 0));
  cudaGraphNode_t choose = AddKernel(graph, nullptr, reinterpret_cast<void*>(Choose), handle,
                                     static_cast<const int*>(values));
  cudaGraph_t* bodies = AddConditional(graph, &choose, handle, type, size);
  for (unsigned i = 0; i < size; ++i) {
    AddKernel(bodies[i], nullptr, reinterpret_cast<void*>(Store), values + 1,
              static_cast<int>(i) + 10);
  }
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  for (size_t value = 0; value < expected.size(); ++value) {
    Write(values, static_cast<int>(value));
    Write(values + 1, -1);
    CHECK(cudaGraphLaunch(exec, nullptr));
    int found = Read(values + 1);
    EXPECT(found == expected[value], "type %d with %zu: %d, not %d", type, value, found,
           expected[value]);
  }
  CHECK(cudaGraphExecDestroy(exec));
  CHECK(cudaGraphDestroy(graph));
}

// A loop whose body is captured, and that reads the program's memory, which a body may only where
// it is pinned; an IF inside of it.
static void Loops(int* values) {
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  cudaGraphConditionalHandle loop = 0, inner = 0;
  CHECK(cudaGraphCreate(&graph, 0));
  CHECK(cudaGraphConditionalHandleCreate(&loop, graph, 1, cudaGraphCondAssignDefault));
  CHECK(cudaGraphConditionalHandleCreate(&inner, graph, 1, cudaGraphCondAssignDefault));
  cudaGraph_t body = AddConditional(graph, nullptr, loop, cudaGraphCondTypeWhile, 1)[0];
  int* source = nullptr;
  CHECK(cudaHostAlloc(&source, sizeof *source, cudaHostAllocMapped));
  *source = 77;
  cudaStream_t stream;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  CHECK(cudaStreamBeginCaptureToGraph(stream, body, nullptr, nullptr, 0,
                                      cudaStreamCaptureModeRelaxed));
  Count<<<1, 1, 0, stream>>>(loop, values, 5);
  CHECK(cudaMemcpyAsync(values + 1, source, sizeof *source, cudaMemcpyHostToDevice, stream));
  cudaGraph_t same = nullptr;
  CHECK(cudaStreamEndCapture(stream, &same));
  EXPECT(same == body, "another graph");
  size_t count = 0;
  CHECK(cudaGraphGetNodes(body, nullptr, &count));
  EXPECT(count == 2, "the body has %zu nodes", count);
  cudaGraph_t nested = AddConditional(body, nullptr, inner, cudaGraphCondTypeIf, 1)[0];
  AddKernel(nested, nullptr, reinterpret_cast<void*>(Count), cudaGraphConditionalHandle{0},
            values + 2, 0);
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  Write(values + 2, 0);
  for (int round = 1; round <= 2; ++round) {  // each launch begins with the default
    Write(values, 0);
    *source = 77 + round;
    CHECK(cudaGraphLaunch(exec, stream));
    CHECK(cudaStreamSynchronize(stream));
    EXPECT(Read(values) == 5, "the loop ran %d times", Read(values));
    EXPECT(Read(values + 1) == 77 + round, "the body copied %d", Read(values + 1));
    EXPECT(Read(values + 2) == 5 * round, "the nested body ran %d times", Read(values + 2));
  }
  CHECK(cudaGraphExecDestroy(exec));
  CHECK(cudaGraphDestroy(graph));
  CHECK(cudaStreamDestroy(stream));
  CHECK(cudaFreeHost(source));
}

static void Refuses(int* values) {
  cudaGraph_t graph, other;
  cudaGraphExec_t exec;
  cudaGraphNode_t node;
  cudaGraphConditionalHandle handle = 0;
  CHECK(cudaGraphCreate(&graph, 0));
  EXPECT(cudaGraphConditionalHandleCreate(&handle, graph, 0, 0x40) == cudaErrorInvalidValue,
         "flags that are none");
  EXPECT(cudaGraphConditionalHandleCreate(&handle, nullptr, 0, 0) == cudaErrorInvalidValue,
         "no graph");
  CHECK(cudaGraphConditionalHandleCreate(&handle, graph, 0, cudaGraphCondAssignDefault));
  cudaGraphNodeParams params = {};
  params.type = cudaGraphNodeTypeConditional;
  params.conditional.handle = handle + 64;
  params.conditional.type = cudaGraphCondTypeIf;
  params.conditional.size = 1;
  EXPECT(cudaGraphAddNode(&node, graph, nullptr, nullptr, 0, &params) == cudaErrorInvalidValue,
         "no handle");
  params.conditional.handle = handle;
  params.conditional.size = 3;
  EXPECT(cudaGraphAddNode(&node, graph, nullptr, nullptr, 0, &params) == cudaErrorInvalidValue,
         "an IF with three bodies");
  params.conditional.size = 0;
  EXPECT(cudaGraphAddNode(&node, graph, nullptr, nullptr, 0, &params) == cudaErrorInvalidValue,
         "no body");
  cudaGraph_t body = AddConditional(graph, nullptr, handle, cudaGraphCondTypeWhile, 1, &node)[0];
  EXPECT(cuGraphDestroy(reinterpret_cast<CUgraph>(body)) == CUDA_ERROR_INVALID_VALUE, "a body");
  EXPECT(cudaGraphNodeSetParams(node, &params) != cudaSuccess, "a conditional node was changed");
  EXPECT(cudaGraphClone(&other, graph) != cudaSuccess, "a graph with conditional nodes was cloned");
  // A body that does not run leaves the program's memory alone; Longwire refuses such a copy.
  static int host = 123;
  CHECK(cudaGraphAddMemcpyNode1D(&node, body, nullptr, 0, &host, values, sizeof host,
                                 cudaMemcpyDeviceToHost));
  if (cudaGraphInstantiate(&exec, graph, 0) == cudaSuccess) {
    CHECK(cudaGraphLaunch(exec, nullptr));
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaGraphExecDestroy(exec));
  }
  EXPECT(host == 123, "a body that did not run wrote %d", host);
  CHECK(cudaGraphDestroy(graph));
  (void)cudaGetLastError();
}

int main() {
  int* values;
  CHECK(cudaMalloc(&values, 4 * sizeof *values));
  Chooses(values, cudaGraphCondTypeIf, 1, {-1, 10, 10});
  Chooses(values, cudaGraphCondTypeIf, 2, {11, 10, 10});
  Chooses(values, cudaGraphCondTypeSwitch, 3, {10, 11, 12, -1});
  Loops(values);
  Refuses(values);
  CHECK(cudaFree(values));
  return Pass("graph_conditional");
}
