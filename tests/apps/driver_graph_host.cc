// Host function nodes of graphs that the program builds: they see what copies before them wrote,
// copies after them read what they wrote, at every launch.
#include <atomic>

#include "driver_graph.h"

constexpr int kCount = 500;
constexpr size_t kBytes = kCount * sizeof(int);

struct Work {
  std::vector<int> values = std::vector<int>(kCount);
  std::atomic<int> runs{0};
  int add = 1;
};

static void CUDA_CB AddToAll(void* data) {
  Work* work = static_cast<Work*>(data);
  for (int& value : work->values) value += work->add;
  ++work->runs;
}

static void CUDA_CB CountOnly(void* data) { ++*static_cast<std::atomic<int>*>(data); }

// kernel → values → host function → values → kernel → result, twice in a row with a child graph.
static void BetweenCopies(GraphProgram& program) {
  Work work;
  std::vector<int> input(kCount), result(kCount);
  CUdeviceptr a = program.Allocate(kCount), b = program.Allocate(kCount);
  CUgraph inner = NewGraph(), graph = NewGraph();
  CUgraphNode host = AddHost(inner, {}, AddToAll, &work);
  CUgraphNode up = AddCopy(graph, {}, Copy1D(a, input.data(), kBytes), program.context);
  CUgraphNode kernel = AddScale(graph, {up}, program.scale, a, b, 2, kCount);
  CUgraphNode out =
      AddCopy(graph, {kernel}, Copy1D(work.values.data(), b, kBytes), program.context);
  CUgraphNode child = nullptr;
  CHECK_DRIVER(cuGraphAddChildGraphNode(&child, graph, &out, 1, inner));
  CUgraphNode back =
      AddCopy(graph, {child}, Copy1D(a, work.values.data(), kBytes), program.context);
  CUgraphNode second = AddScale(graph, {back}, program.scale, a, b, 10, kCount);
  AddCopy(graph, {second}, Copy1D(result.data(), b, kBytes), program.context);
  CUgraphExec exec = program.Instantiate(graph);
  for (int launch = 1; launch <= 3; ++launch) {
    for (int i = 0; i < kCount; ++i) input[i] = i + launch;
    work.add = 100 * launch;
    program.Run(exec);
    EXPECT(work.runs == launch, "the host function ran %d times", work.runs.load());
    for (int i = 0; i < kCount; ++i) {
      int expected = ((i + launch) * 2 + 3 + work.add) * 10 + 3;
      EXPECT(result[i] == expected, "launch %d: element %d is %d, not %d", launch, i, result[i],
             expected);
    }
  }
  CUDA_HOST_NODE_PARAMS told = {};
  CHECK_DRIVER(cuGraphHostNodeGetParams(host, &told));
  EXPECT(told.fn == AddToAll && told.userData == &work, "the host node differs");
  CHECK_DRIVER(cuGraphExecDestroy(exec));
  CHECK_DRIVER(cuGraphDestroy(inner));
  CHECK_DRIVER(cuGraphDestroy(graph));
}

static void Changes(GraphProgram& program) {
  std::atomic<int> first{0}, second{0}, third{0};
  CUgraph graph = NewGraph();
  CUgraphNode node = AddHost(graph, {}, CountOnly, &first);
  CUgraphExec exec = program.Instantiate(graph);
  program.Run(exec);
  CUDA_HOST_NODE_PARAMS params = {};
  params.fn = CountOnly;
  params.userData = &second;
  CHECK_DRIVER(cuGraphExecHostNodeSetParams(exec, node, &params));
  program.Run(exec);
  params.userData = &third;
  CHECK_DRIVER(cuGraphHostNodeSetParams(node, &params));
  program.Run(exec);
  EXPECT(first == 1 && second == 2 && third == 0, "the functions ran %d, %d, %d times",
         first.load(), second.load(), third.load());
  CUgraphExecUpdateResultInfo info = {};
  CHECK_DRIVER(cuGraphExecUpdate(exec, graph, &info));
  program.Run(exec);
  EXPECT(second == 2 && third == 1, "after the update %d and %d", second.load(), third.load());
  // Many changes while launches are under way.
  for (int i = 0; i < 50; ++i) {
    params.userData = i % 2 == 0 ? &first : &second;
    CHECK_DRIVER(cuGraphExecHostNodeSetParams(exec, node, &params));
    CHECK_DRIVER(cuGraphLaunch(exec, program.stream));
  }
  CHECK_DRIVER(cuStreamSynchronize(program.stream));
  EXPECT(first == 26 && second == 27, "after 50 changes %d and %d", first.load(), second.load());
  CHECK_DRIVER(cuGraphExecDestroy(exec));
  CHECK_DRIVER(cuGraphDestroy(graph));
}

static void Refusals(GraphProgram& program) {
  std::atomic<int> runs{0};
  CUgraph graph = NewGraph();
  CUgraphNode empty = nullptr, node = nullptr;
  CHECK_DRIVER(cuGraphAddEmptyNode(&empty, graph, nullptr, 0));
  CUDA_HOST_NODE_PARAMS params = {}, told = {};
  constexpr CUresult kInvalid = CUDA_ERROR_INVALID_VALUE;
  REFUSED(kInvalid, cuGraphAddHostNode(&node, graph, nullptr, 0, &params));  // no function
  params.fn = CountOnly;
  params.userData = &runs;
  REFUSED(kInvalid, cuGraphAddHostNode(nullptr, graph, nullptr, 0, &params));
  REFUSED(kInvalid, cuGraphAddHostNode(&node, nullptr, nullptr, 0, &params));
  REFUSED(kInvalid, cuGraphAddHostNode(&node, graph, nullptr, 2, &params));
  REFUSED(kInvalid, cuGraphAddHostNode(&node, graph, nullptr, 0, nullptr));
  REFUSED(kInvalid, cuGraphHostNodeGetParams(empty, &told));
  REFUSED(kInvalid, cuGraphHostNodeSetParams(empty, &params));
  REFUSED(kInvalid, cuGraphHostNodeGetParams(nullptr, &told));
  CUgraphExec exec = program.Instantiate(graph);
  REFUSED(kInvalid, cuGraphExecHostNodeSetParams(exec, empty, &params));
  REFUSED(kInvalid, cuGraphExecHostNodeSetParams(nullptr, empty, &params));
  program.Run(exec);
  EXPECT(runs == 0, "a refused host function ran");
  CHECK_DRIVER(cuGraphExecDestroy(exec));
  CHECK_DRIVER(cuGraphDestroy(graph));
}

int main() {
  GraphProgram program;
  BetweenCopies(program);
  Changes(program);
  Refusals(program);
  std::printf("PASS driver_graph_host\n");
  return 0;
}
