// How graphs hang together, and what can be changed in them and in executables: edges, clones,
// child graphs, nodes that are switched off or destroyed, attributes.
#include "driver_graph.h"

constexpr int kCount = 100;
constexpr size_t kBytes = kCount * sizeof(int);
constexpr CUresult kInvalid = CUDA_ERROR_INVALID_VALUE;

static int First(CUdeviceptr memory) {
  int value = 0;
  CHECK_DRIVER(cuMemcpyDtoH(&value, memory, sizeof value));
  return value;
}

static void Edges(GraphProgram& program) {
  CUdeviceptr a = program.Allocate(kCount);
  CUgraph graph = NewGraph(), clone = nullptr;
  CUgraphNode first = AddScale(graph, {}, program.scale, a, a, 2, kCount);   // 3
  CUgraphNode second = AddScale(graph, {}, program.scale, a, a, 5, kCount);  // 18
  CHECK_DRIVER(cuGraphAddDependencies(graph, &first, &second, nullptr, 1));
  CUgraphNode from = nullptr, to = nullptr, found = nullptr, nodes[4];
  CUgraphEdgeData data = {};
  size_t count = 1;
  CHECK_DRIVER(cuGraphGetEdges(graph, &from, &to, &data, &count));
  EXPECT(count == 1 && from == first && to == second, "%zu edges, or others", count);
  count = 4;
  CHECK_DRIVER(cuGraphGetRootNodes(graph, nodes, &count));
  EXPECT(count == 1 && nodes[0] == first, "%zu root nodes, or others", count);
  count = 1;
  CHECK_DRIVER(cuGraphNodeGetDependencies(second, &found, &data, &count));
  EXPECT(count == 1 && found == first, "other dependencies");
  CHECK_DRIVER(cuGraphNodeGetDependentNodes(first, &found, &data, &count));
  EXPECT(count == 1 && found == second, "other dependent nodes");
  CHECK_DRIVER(cuGraphClone(&clone, graph));
  CHECK_DRIVER(cuGraphNodeFindInClone(&found, second, clone));
  EXPECT(found != second && found != nullptr, "the clone has the same node");
  REFUSED(kInvalid, cuGraphNodeFindInClone(&found, found, clone));
  CUgraphExec exec = program.Instantiate(clone);
  program.Run(exec);
  EXPECT(First(a) == 18, "the result is %d", First(a));
  CHECK_DRIVER(cuGraphExecDestroy(exec));
  // Without the edge, then without the first node.
  CHECK_DRIVER(cuGraphRemoveDependencies(graph, &first, &second, nullptr, 1));
  count = 0;
  CHECK_DRIVER(cuGraphGetEdges(graph, nullptr, nullptr, nullptr, &count));
  EXPECT(count == 0, "%zu edges are left", count);
  CHECK_DRIVER(cuGraphDestroyNode(first));
  CHECK_DRIVER(cuMemsetD32(a, 0, kCount));
  CHECK_DRIVER(cuCtxSynchronize());
  exec = program.Instantiate(graph);
  program.Run(exec);
  EXPECT(First(a) == 3, "the result without the first node is %d", First(a));
  CHECK_DRIVER(cuGraphExecDestroy(exec));
  CHECK_DRIVER(cuGraphDestroy(graph));
  CHECK_DRIVER(cuGraphDestroy(clone));
}

// A child graph's copies use the same program memory as the original's.
static void Children(GraphProgram& program) {
  CUdeviceptr a = program.Allocate(kCount);
  std::vector<int> one(kCount), two(kCount);
  CUgraph inner = NewGraph(), other = NewGraph(), graph = NewGraph(), told = nullptr;
  AddCopy(inner, {}, Copy1D(one.data(), a, kBytes), program.context);
  AddCopy(other, {}, Copy1D(two.data(), a, kBytes), program.context);
  CUgraphNode kernel = AddScale(graph, {}, program.scale, a, a, 2, kCount), child = nullptr;
  CHECK_DRIVER(cuGraphAddChildGraphNode(&child, graph, &kernel, 1, inner));
  CHECK_DRIVER(cuGraphChildGraphNodeGetGraph(child, &told));
  EXPECT(told != nullptr && told != inner, "the child graph is no copy");
  CUgraphExec exec = program.Instantiate(graph);
  program.Run(exec);
  EXPECT(one[0] == 3 && two[0] == 0, "the child graph wrote %d and %d", one[0], two[0]);
  CHECK_DRIVER(cuGraphExecChildGraphNodeSetParams(exec, child, other));
  program.Run(exec);
  EXPECT(one[0] == 3 && two[0] == 9, "the changed child graph wrote %d and %d", one[0], two[0]);
  REFUSED(kInvalid, cuGraphExecChildGraphNodeSetParams(exec, kernel, other));
  EXPECT(cuGraphExecChildGraphNodeSetParams(exec, child, nullptr) != CUDA_SUCCESS, "no graph");
  // A node that is switched off.
  unsigned enabled = 0;
  CHECK_DRIVER(cuGraphNodeSetEnabled(exec, kernel, 0));
  CHECK_DRIVER(cuGraphNodeGetEnabled(exec, kernel, &enabled));
  EXPECT(enabled == 0, "the kernel is still on");
  program.Run(exec);
  EXPECT(two[0] == 9, "the kernel ran: %d", two[0]);
  CHECK_DRIVER(cuGraphExecDestroy(exec));
  for (CUgraph each : {inner, other, graph}) CHECK_DRIVER(cuGraphDestroy(each));
}

static void Parameters(GraphProgram& program) {
  CUdeviceptr a = program.Allocate(kCount);
  CUgraph graph = NewGraph();
  CUDA_MEMSET_NODE_PARAMS fill = {}, told = {};
  fill.dst = a;
  fill.elementSize = 4;
  fill.width = kCount;
  fill.height = 1;
  fill.value = 7;
  CUgraphNode memset = nullptr;
  CHECK_DRIVER(cuGraphAddMemsetNode(&memset, graph, nullptr, 0, &fill, program.context));
  CUgraphNode kernel = AddScale(graph, {memset}, program.scale, a, a, 2, kCount);
  CHECK_DRIVER(cuGraphMemsetNodeGetParams(memset, &told));
  EXPECT(told.dst == a && told.value == 7 && told.width == kCount, "the memset differs");
  CUDA_GRAPH_INSTANTIATE_PARAMS how = {};
  CUgraphExec exec = nullptr;
  cuuint64_t flags = 1;
  CHECK_DRIVER(cuGraphInstantiateWithParams(&exec, graph, &how));
  EXPECT(how.result_out == CUDA_GRAPH_INSTANTIATE_SUCCESS, "the result is %d", how.result_out);
  CHECK_DRIVER(cuGraphExecGetFlags(exec, &flags));
  EXPECT(flags == 0, "the flags are %llu", static_cast<unsigned long long>(flags));
  CHECK_DRIVER(cuGraphUpload(exec, program.stream));
  program.Run(exec);
  EXPECT(First(a) == 17, "the result is %d", First(a));
  fill.value = 8;
  CHECK_DRIVER(cuGraphExecMemsetNodeSetParams(exec, memset, &fill, program.context));
  program.Run(exec);
  EXPECT(First(a) == 19, "the changed result is %d", First(a));
  fill.value = 9;
  CHECK_DRIVER(cuGraphMemsetNodeSetParams(memset, &fill));
  CUlaunchAttributeValue value = {};
  value.cooperative = 1;
  CHECK_DRIVER(cuGraphKernelNodeSetAttribute(kernel, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &value));
  CUgraphNode like = AddScale(graph, {kernel}, program.scale, a, a, 2, kCount);
  CHECK_DRIVER(cuGraphKernelNodeCopyAttributes(like, kernel));
  value.cooperative = 0;
  CHECK_DRIVER(cuGraphKernelNodeGetAttribute(like, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &value));
  EXPECT(value.cooperative == 1, "the attribute was not copied");
  CHECK_DRIVER(cuGraphExecDestroy(exec));
  exec = program.Instantiate(graph);
  program.Run(exec);
  EXPECT(First(a) == (9 * 2 + 3) * 2 + 3, "the result of the changed graph is %d", First(a));
  CHECK_DRIVER(cuGraphExecDestroy(exec));
  CHECK_DRIVER(cuGraphDestroy(graph));
}

int main() {
  GraphProgram program;
  Edges(program);
  Children(program);
  Parameters(program);
  std::printf("PASS driver_graph_structure\n");
  return 0;
}
