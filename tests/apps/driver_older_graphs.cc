// Graphs by the calls of older toolkits: edges without data, kernel nodes without kernels, errors
// that come back as a node and a text, captures in the only mode that there was.
#include "driver_graph.h"
// after it: it takes names away
#include "older_graph.h"

constexpr int kCount = 100;
constexpr CUresult kInvalid = CUDA_ERROR_INVALID_VALUE;

static int First(CUdeviceptr memory) {
  int value = 0;
  CHECK_DRIVER(cuMemcpyDtoH(&value, memory, sizeof value));
  return value;
}

static void Clear(CUdeviceptr memory) {
  CHECK_DRIVER(cuMemsetD32(memory, 0, kCount));
  CHECK_DRIVER(cuCtxSynchronize());
}

static CUDA_KERNEL_NODE_PARAMS_v1 OlderParams(GraphProgram& program, ScaleNode* node) {
  CUDA_KERNEL_NODE_PARAMS_v1 params = {};
  params.func = program.scale;
  params.gridDimX = 2;
  params.blockDimX = 64;
  params.gridDimY = params.gridDimZ = params.blockDimY = params.blockDimZ = 1;
  params.kernelParams = node->arguments;
  return params;
}

static CUgraphExec InstantiateOlder(CUgraph graph) {
  CUgraphExec exec = nullptr;
  CUgraphNode error = reinterpret_cast<CUgraphNode>(1);
  char log[64] = "as it was";
  CHECK_DRIVER(cuGraphInstantiate_v2(&exec, graph, &error, log, sizeof log));
  EXPECT(error == nullptr && log[0] == '\0', "error node %p, log '%s'", error, log);
  return exec;
}

static void KernelNodes(GraphProgram& program) {
  CUdeviceptr a = program.Allocate(kCount);
  CUgraph graph = NewGraph();
  CUgraphNode first = nullptr, second = nullptr, empty = nullptr, wrong = nullptr;
  ScaleNode two{a, a, 2, kCount}, five{a, a, 5, kCount}, seven{a, a, 7, kCount};
  CUDA_KERNEL_NODE_PARAMS_v1 params = OlderParams(program, &two), told = {};
  CHECK_DRIVER(cuGraphAddKernelNode(&first, graph, nullptr, 0, &params));
  params = OlderParams(program, &five);
  CHECK_DRIVER(cuGraphAddKernelNode(&second, graph, &first, 1, &params));
  CHECK_DRIVER(cuGraphAddEmptyNode(&empty, graph, nullptr, 0));
  CHECK_DRIVER(cuGraphKernelNodeGetParams(second, &told));
  EXPECT(told.func == program.scale && told.gridDimX == 2 && told.blockDimX == 64, "other shape");
  EXPECT(*static_cast<int*>(told.kernelParams[2]) == 5, "the factor is %d",
         *static_cast<int*>(told.kernelParams[2]));
  CUgraphExec exec = InstantiateOlder(graph);
  program.Run(exec);  // (0 * 2 + 3) * 5 + 3
  EXPECT(First(a) == 18, "the result is %d", First(a));
  params = OlderParams(program, &seven);
  CHECK_DRIVER(cuGraphExecKernelNodeSetParams(exec, first, &params));
  Clear(a);
  program.Run(exec);
  EXPECT(First(a) == 18, "of zero: %d", First(a));
  program.Run(exec);  // (18 * 7 + 3) * 5 + 3
  EXPECT(First(a) == 648, "of 18: %d", First(a));
  CHECK_DRIVER(cuGraphExecDestroy(exec));
  // In the graph, not in executables made before.
  CHECK_DRIVER(cuGraphKernelNodeSetParams(second, &params));
  CHECK_DRIVER(cuGraphKernelNodeGetParams(second, &told));
  EXPECT(*static_cast<int*>(told.kernelParams[2]) == 7, "the factor was not changed");
  Clear(a);
  CHECK_DRIVER(cuGraphInstantiate(&exec, graph, nullptr, nullptr, 0));
  program.Run(exec);  // 3 * 7 + 3
  EXPECT(First(a) == 24, "the changed graph: %d", First(a));

  REFUSED(kInvalid, cuGraphAddKernelNode(&wrong, nullptr, nullptr, 0, &params));
  REFUSED(kInvalid, cuGraphAddKernelNode(&wrong, graph, nullptr, 0, nullptr));
  REFUSED(kInvalid, cuGraphAddKernelNode(&wrong, graph, nullptr, 1, &params));
  REFUSED(kInvalid, cuGraphKernelNodeGetParams(empty, &told));
  REFUSED(kInvalid, cuGraphKernelNodeSetParams(empty, &params));
  REFUSED(kInvalid, cuGraphExecKernelNodeSetParams(exec, empty, &params));
  REFUSED(kInvalid, cuGraphExecKernelNodeSetParams(nullptr, first, &params));
  params.blockDimX = 1 << 20;
  REFUSED(kInvalid, cuGraphKernelNodeSetParams(first, &params));
  REFUSED(kInvalid, cuGraphInstantiate(&exec, nullptr, nullptr, nullptr, 0));
  REFUSED(kInvalid, cuGraphInstantiate_v2(nullptr, graph, nullptr, nullptr, 0));
  CHECK_DRIVER(cuGraphExecDestroy(exec));
  CHECK_DRIVER(cuGraphDestroy(graph));
}

static void Edges(GraphProgram& program) {
  CUdeviceptr a = program.Allocate(kCount);
  CUgraph graph = NewGraph();
  CUgraphNodeParams params = {};
  params.type = CU_GRAPH_NODE_TYPE_MEMSET;
  params.memset.dst = a;
  params.memset.elementSize = 4;
  params.memset.width = kCount;
  params.memset.height = 1;
  params.memset.value = 9;
  CUgraphNode fill = nullptr, scale = nullptr, from[4], to[4];
  CHECK_DRIVER(cuGraphAddNode(&fill, graph, nullptr, 0, &params));
  ScaleNode two{a, a, 2, kCount};
  CUDA_KERNEL_NODE_PARAMS_v1 kernel = OlderParams(program, &two);
  CHECK_DRIVER(cuGraphAddKernelNode(&scale, graph, nullptr, 0, &kernel));
  CHECK_DRIVER(cuGraphAddDependencies(graph, &fill, &scale, 1));
  size_t count = 0;
  CHECK_DRIVER(cuGraphGetEdges(graph, nullptr, nullptr, &count));
  EXPECT(count == 1, "%zu edges", count);
  count = 4;
  CHECK_DRIVER(cuGraphGetEdges(graph, from, to, &count));
  EXPECT(count == 1 && from[0] == fill && to[0] == scale, "%zu edges, or another", count);
  EXPECT(from[3] == nullptr && to[3] == nullptr, "what is beyond the last is not cleared");
  CHECK_DRIVER(cuGraphNodeGetDependencies(scale, from, &(count = 4)));
  EXPECT(count == 1 && from[0] == fill, "%zu dependencies, or another", count);
  CHECK_DRIVER(cuGraphNodeGetDependentNodes(fill, to, &(count = 4)));
  EXPECT(count == 1 && to[0] == scale, "%zu dependent nodes, or another", count);
  CHECK_DRIVER(cuGraphNodeGetDependentNodes(scale, nullptr, &(count = 4)));
  EXPECT(count == 0, "%zu nodes depend on the last", count);
  CUgraphExec exec = InstantiateOlder(graph);
  program.Run(exec);
  EXPECT(First(a) == 21, "the result is %d", First(a));
  REFUSED(kInvalid, cuGraphAddDependencies(graph, &fill, &scale, 1));  // there already
  CHECK_DRIVER(cuGraphRemoveDependencies(graph, &fill, &scale, 1));
  CHECK_DRIVER(cuGraphGetEdges(graph, nullptr, nullptr, &count));
  EXPECT(count == 0, "%zu edges are left", count);
  REFUSED(kInvalid, cuGraphRemoveDependencies(graph, &fill, &scale, 1));
  REFUSED(kInvalid, cuGraphAddDependencies(nullptr, &fill, &scale, 1));
  REFUSED(kInvalid, cuGraphAddNode(&fill, nullptr, nullptr, 0, &params));
  REFUSED(kInvalid, cuGraphAddNode(&fill, graph, nullptr, 0, nullptr));
  CHECK_DRIVER(cuGraphExecDestroy(exec));
  CHECK_DRIVER(cuGraphDestroy(graph));
}

static void Updates(GraphProgram& program) {
  CUdeviceptr a = program.Allocate(kCount);
  CUgraph graph = NewGraph(), changed = NewGraph(), larger = NewGraph(), other = NewGraph();
  ScaleNode two{a, a, 2, kCount}, five{a, a, 5, kCount};
  CUDA_KERNEL_NODE_PARAMS_v1 params = OlderParams(program, &two);
  CUgraphNode node = nullptr, only = nullptr, error = reinterpret_cast<CUgraphNode>(1);
  CHECK_DRIVER(cuGraphAddKernelNode(&node, graph, nullptr, 0, &params));
  CHECK_DRIVER(cuGraphAddKernelNode(&node, larger, nullptr, 0, &params));
  CHECK_DRIVER(cuGraphAddKernelNode(&node, larger, &node, 1, &params));
  params = OlderParams(program, &five);
  CHECK_DRIVER(cuGraphAddKernelNode(&node, changed, nullptr, 0, &params));
  CHECK_DRIVER(cuGraphAddEmptyNode(&only, other, nullptr, 0));
  CUgraphExec exec = InstantiateOlder(graph);
  program.Run(exec);
  CUgraphExecUpdateResult result = CU_GRAPH_EXEC_UPDATE_ERROR;
  CHECK_DRIVER(cuGraphExecUpdate(exec, changed, &error, &result));
  EXPECT(result == CU_GRAPH_EXEC_UPDATE_SUCCESS && error == nullptr, "the result is %d", result);
  program.Run(exec);
  EXPECT(First(a) == 18, "the updated executable: %d", First(a));
  REFUSED(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, cuGraphExecUpdate(exec, larger, &error, &result));
  EXPECT(result == CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED, "a larger graph: %d", result);
  REFUSED(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, cuGraphExecUpdate(exec, other, &error, &result));
  EXPECT(result == CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED && error == only,
         "another kind of node: %d, node %p, not %p", result, error, only);
  program.Run(exec);
  EXPECT(First(a) == 93, "after refused updates: %d", First(a));
  REFUSED(kInvalid, cuGraphExecUpdate(nullptr, graph, &error, &result));
  EXPECT_OF_MISTAKE(cuGraphExecUpdate(exec, graph, &error, nullptr) == kInvalid, "no result");
  CHECK_DRIVER(cuGraphExecDestroy(exec));
  for (CUgraph each : {graph, changed, larger, other}) CHECK_DRIVER(cuGraphDestroy(each));
}

static void Launch(GraphProgram& program, CUdeviceptr memory, int factor) {
  ScaleNode scale{memory, memory, factor, kCount};
  CHECK_DRIVER(cuLaunchKernel(program.scale, 2, 1, 1, 64, 1, 1, 0, program.stream, scale.arguments,
                              nullptr));
}

static void Captures(GraphProgram& program) {
  CUdeviceptr a = program.Allocate(kCount), b = program.Allocate(kCount);
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
  cuuint64_t id = 0, same = 0;
  CHECK_DRIVER(cuStreamGetCaptureInfo(program.stream, &status, &id));
  EXPECT(status == CU_STREAM_CAPTURE_STATUS_NONE, "the status before is %d", status);
  CHECK_DRIVER(cuStreamBeginCapture(program.stream));
  // There were no modes then: nothing is refused.
  CUdeviceptr memory = 0;
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  Launch(program, a, 2);
  CUgraph graph = nullptr, told = nullptr;
  const CUgraphNode* after = nullptr;
  size_t count = 99;
  CHECK_DRIVER(cuStreamGetCaptureInfo(program.stream, &status, &id));
  EXPECT(status == CU_STREAM_CAPTURE_STATUS_ACTIVE && id != 0, "the status is %d", status);
  CHECK_DRIVER(cuStreamGetCaptureInfo_v2(program.stream, &status, &same, &told, &after, &count));
  EXPECT(same == id && told != nullptr && count == 1, "%zu dependencies", count);
  CUgraphNode first = after[0];
  Launch(program, a, 5);
  // What comes next stands beside the second launch, not behind it.
  CHECK_DRIVER(cuStreamUpdateCaptureDependencies(program.stream, &first, 1,
                                                 CU_STREAM_SET_CAPTURE_DEPENDENCIES));
  Launch(program, b, 7);
  CHECK_DRIVER(
      cuStreamGetCaptureInfo_v2(program.stream, &status, nullptr, nullptr, &after, &count));
  EXPECT(count == 1, "%zu dependencies after the third launch", count);
  CUgraphNode third = after[0], found[4];
  CHECK_DRIVER(cuGraphNodeGetDependencies(third, found, &(count = 4)));
  EXPECT(count == 1 && found[0] == first, "the third launch is not behind the first alone");
  CHECK_DRIVER(cuGraphNodeGetDependentNodes(first, nullptr, &count));
  EXPECT(count == 2, "%zu nodes are behind the first", count);
  CUgraphNode second = nullptr;
  CHECK_DRIVER(cuGraphNodeGetDependentNodes(first, found, &(count = 4)));
  second = found[0] == third ? found[1] : found[0];
  CHECK_DRIVER(cuStreamUpdateCaptureDependencies(program.stream, &second, 1,
                                                 CU_STREAM_ADD_CAPTURE_DEPENDENCIES));
  REFUSED(kInvalid, cuStreamUpdateCaptureDependencies(program.stream, &first, 1, 77));
  REFUSED(kInvalid, cuStreamGetCaptureInfo(program.stream, nullptr, &id));
  CHECK_DRIVER(cuStreamEndCapture(program.stream, &graph));
  EXPECT(graph == told, "another graph came of it");
  CUgraphExec exec = InstantiateOlder(graph);
  program.Run(exec);
  EXPECT(First(a) == 18 && First(b) == 3, "the results are %d and %d", First(a), First(b));
  CHECK_DRIVER(cuGraphExecDestroy(exec));
  CHECK_DRIVER(cuGraphDestroy(graph));

  CHECK_DRIVER(cuStreamBeginCapture(program.stream));
  CHECK_DRIVER(cuMemAlloc(&memory, 16));
  CHECK_DRIVER(cuStreamEndCapture(program.stream, &graph));
  CHECK_DRIVER(cuGraphDestroy(graph));
  CHECK_DRIVER(cuMemFree(memory));
  CHECK_DRIVER(cuThreadExchangeStreamCaptureMode(&mode));
  REFUSED(CUDA_ERROR_ILLEGAL_STATE,
          cuStreamUpdateCaptureDependencies(program.stream, nullptr, 0, 0));
  REFUSED(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuStreamBeginCapture(nullptr));
}

int main() {
  GraphProgram program;
  KernelNodes(program);
  Edges(program);
  Updates(program);
  Captures(program);
  std::printf("PASS driver_older_graphs\n");
  return 0;
}
