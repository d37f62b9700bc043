// Kernels of an executable get other parameters before each launch, as programs do that keep one
// graph and change where its kernels read and write. Every launch leaves its results in rows of
// its own, so a parameter that came too early or too late shows.
#include <mutex>
#include <string>
#include <thread>

#include "driver_graph.h"

constexpr int kNodes = 24, kCount = 64;

// A graph of one kernel that adds 3 to what `to` has times `factor`.
struct Child {
  CUgraph graph = NewGraph();
  CUgraphNode node;
  ScaleNode scale;

  Child(GraphProgram& program, CUdeviceptr to, int factor) : scale{to, to, factor, kCount} {
    node = AddScale(graph, {}, program.scale, to, to, factor, kCount);
  }
  ~Child() { CHECK_DRIVER(cuGraphDestroy(graph)); }
  Child(const Child&) = delete;
  void SetFactor(GraphProgram& program, int factor) {
    scale.factor = factor;
    CUDA_KERNEL_NODE_PARAMS params = scale.Params(program.scale);
    CHECK_DRIVER(cuGraphKernelNodeSetParams(node, &params));
  }
};

// A chain: each kernel reads what the one before it wrote.
struct Chain {
  GraphProgram& program;
  CUfunction function;
  CUgraph graph = NewGraph();
  std::vector<CUgraphNode> nodes;
  CUgraphExec exec = nullptr;
  CUdeviceptr rows;  // kNodes + 1 for each step; the first one of a step is zeros

  Chain(GraphProgram& used, CUfunction kernel, int steps)
      : program(used), function(kernel), rows(used.Allocate(Ints(steps))) {
    for (int i = 0; i < kNodes; ++i) {
      std::vector<CUgraphNode> after;
      if (i != 0) after.push_back(nodes.back());
      nodes.push_back(AddScale(graph, after, function, Row(0, i), Row(0, i + 1), 1, kCount));
    }
    exec = program.Instantiate(graph);
  }
  ~Chain() {
    if (exec != nullptr) CHECK_DRIVER(cuGraphExecDestroy(exec));
    CHECK_DRIVER(cuGraphDestroy(graph));
    CHECK_DRIVER(cuMemFree(rows));
  }
  Chain(const Chain&) = delete;

  static size_t Ints(int steps) { return size_t{kCount} * (kNodes + 1) * steps; }
  CUdeviceptr Row(int step, int row) const {
    return rows + Ints(step) * sizeof(int) + sizeof(int) * kCount * row;
  }
  static int Factor(int step, int node) { return (step * 7 + node * 3) % 5 - 2; }

  void Change(int step) const {
    for (int i = 0; i < kNodes; ++i) {
      ScaleNode scale{Row(step, i), Row(step, i + 1), Factor(step, i), kCount};
      CUDA_KERNEL_NODE_PARAMS params = scale.Params(function);
      CHECK_DRIVER(cuGraphExecKernelNodeSetParams(exec, nodes[i], &params));
    }
  }
  void Step(int step) const {
    Change(step);
    CHECK_DRIVER(cuGraphLaunch(exec, program.stream));
  }
  void Check(int steps) const {
    std::vector<int> all(Ints(steps));
    CHECK_DRIVER(cuStreamSynchronize(program.stream));
    CHECK_DRIVER(cuMemcpyDtoH(all.data(), rows, all.size() * sizeof(int)));
    for (int step = 0; step < steps; ++step) {
      unsigned wanted = 0;  // wraps around
      for (int i = 0; i < kNodes; ++i) {
        wanted = wanted * static_cast<unsigned>(Factor(step, i)) + 3;
        const int found = all[Ints(step) + static_cast<size_t>(i + 1) * kCount + kCount - 1];
        EXPECT(found == static_cast<int>(wanted), "step %d, kernel %d: %d instead of %d", step, i,
               found, static_cast<int>(wanted));
      }
    }
  }
};

static void Steps(GraphProgram& program, int steps) {
  Chain chain(program, program.scale, steps);
  for (int step = 0; step < steps; ++step) chain.Step(step);
  chain.Check(steps);
}

// A child is one graph or another one in turn, and the second one's kernel is changed in between.
static void Children(GraphProgram& program, int steps) {
  CUdeviceptr value = program.Allocate(kCount);
  Child one(program, value, 2), other(program, value, -1);
  CUgraph graph = NewGraph();
  CUgraphNode node = nullptr;
  CHECK_DRIVER(cuGraphAddChildGraphNode(&node, graph, nullptr, 0, one.graph));
  CUgraphExec exec = program.Instantiate(graph);
  unsigned wanted = 0;
  for (int step = 0; step < steps; ++step) {
    const bool first = step % 2 == 0;
    if (step == steps / 2) other.SetFactor(program, 5);
    CHECK_DRIVER(cuGraphExecChildGraphNodeSetParams(exec, node, first ? one.graph : other.graph));
    CHECK_DRIVER(cuGraphLaunch(exec, program.stream));
    wanted = wanted * static_cast<unsigned>(first ? 2 : other.scale.factor) + 3;
  }
  int found = 0;
  CHECK_DRIVER(cuStreamSynchronize(program.stream));
  CHECK_DRIVER(cuMemcpyDtoH(&found, value, sizeof found));
  EXPECT(found == static_cast<int>(wanted), "%d instead of %d", found, static_cast<int>(wanted));
  CHECK_DRIVER(cuGraphExecDestroy(exec));
  CHECK_DRIVER(cuGraphDestroy(graph));
  CHECK_DRIVER(cuMemFree(value));
}

// Two threads take turns, and each continues what the other has begun.
static void Threads(GraphProgram& program) {
  constexpr int kSteps = 20;
  Chain chain(program, program.scale, kSteps);
  std::mutex mutex;
  int next = 0;
  auto work = [&] {
    CHECK_DRIVER(cuCtxSetCurrent(program.context));
    for (;;) {
      std::lock_guard lock(mutex);
      if (next >= 2 * kSteps) return;
      if (next % 2 == 0) chain.Change(next / 2);
      if (next % 2 == 1) CHECK_DRIVER(cuGraphLaunch(chain.exec, program.stream));
      ++next;
    }
  };
  std::thread one(work), other(work);
  one.join();
  other.join();
  chain.Check(kSteps);
}

// Whatever is changed last counts, by whichever call.
static void OtherChanges(GraphProgram& program) {
  Chain chain(program, program.scale, 4), donor(program, program.scale, 4);
  chain.Step(0);
  chain.Step(1);
  chain.Change(2);
  CUgraphExecUpdateResultInfo info = {};
  CHECK_DRIVER(cuGraphExecUpdate(chain.exec, donor.graph, &info));
  chain.Step(2);
  chain.Change(0);
  chain.Step(3);
  ScaleNode larger{chain.Row(3, 0), chain.Row(3, 1), 1, kCount};
  CUDA_KERNEL_NODE_PARAMS params = larger.Params(program.scale);
  params.blockDimX = 100000;
  REFUSED(CUDA_ERROR_INVALID_VALUE,
          cuGraphExecKernelNodeSetParams(chain.exec, chain.nodes[0], &params));
  chain.Check(4);
}

// What a change names may go right behind it.
static void Ends(GraphProgram& program) {
  for (int i = 0; i < 5; ++i) {
    CUmodule module = nullptr;
    CUfunction scale = nullptr;
    CHECK_DRIVER(cuModuleLoadData(&module, kernels_fatbin));
    CHECK_DRIVER(cuModuleGetFunction(&scale, module, "Scale"));
    Chain chain(program, scale, 3);
    for (int step = 0; step < 3; ++step) chain.Step(step);
    chain.Check(3);
    chain.Change(1);
    if (i % 2 == 0) {
      CHECK_DRIVER(cuGraphExecDestroy(chain.exec));
      chain.exec = nullptr;
    }
    CHECK_DRIVER(cuModuleUnload(module));
  }
  CHECK_DRIVER(cuCtxSynchronize());
}

int main(int count, char** words) {
  GraphProgram program;
  const int steps = count > 1 ? std::stoi(words[1]) : 40;
  Steps(program, steps);
  Children(program, steps);
  if (count == 1) {
    Threads(program);
    OtherChanges(program);
    Ends(program);
  }
  std::printf("PASS driver_graph_changes\n");
  return 0;
}
