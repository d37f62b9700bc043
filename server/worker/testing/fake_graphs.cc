#include "server/worker/testing/fake_graphs.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "base/try.h"
#include "server/worker/testing/fake_driver.h"

namespace longwire::worker::testing {
namespace {

struct Node {
  CUDA_KERNEL_NODE_PARAMS params{};
  std::vector<std::byte> bytes;  // of its parameters

  explicit Node(const CUDA_KERNEL_NODE_PARAMS& its) : params(its) {
    if (its.extra == nullptr) return;
    auto* first = static_cast<const std::byte*>(its.extra[1]);
    bytes.assign(first, first + *static_cast<size_t*>(its.extra[3]));
  }
};

struct Graph {
  std::vector<std::unique_ptr<Node>> nodes;
};

// What the nodes were when it was made, and what they are now.
struct Exec {
  std::vector<const Node*> nodes;
  std::vector<Node> now;
};

FakeDriver& Driver() { return FakeDriver::Get(); }

CUresult AddNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* before, size_t count,
                 const CUDA_KERNEL_NODE_PARAMS* params) {
  auto& nodes = reinterpret_cast<Graph*>(graph)->nodes;
  EXPECT_EQ(count, nodes.empty() ? 0u : 1u);
  if (count != 0) {
    EXPECT_EQ(reinterpret_cast<Node*>(before[0]), nodes.back().get());
  }
  nodes.push_back(std::make_unique<Node>(*params));
  *node = reinterpret_cast<CUgraphNode>(nodes.back().get());
  return CUDA_SUCCESS;
}

CUresult Instantiate(CUgraphExec* exec, CUgraph graph, unsigned long long) {
  if (Driver().instantiate_result != 0)
    return static_cast<CUresult>(Driver().instantiate_result.load());
  auto made = std::make_unique<Exec>();
  for (auto& node : reinterpret_cast<Graph*>(graph)->nodes) {
    made->nodes.push_back(node.get());
    made->now.push_back(*node);
  }
  *exec = reinterpret_cast<CUgraphExec>(made.release());
  ++Driver().graphs_alive;
  ++Driver().instantiated;
  return CUDA_SUCCESS;
}

CUresult SetNode(CUgraphExec handle, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS* params) {
  if (Driver().set_result != 0) return static_cast<CUresult>(Driver().set_result.load());
  auto& exec = *reinterpret_cast<Exec*>(handle);
  for (size_t i = 0; i < exec.nodes.size(); ++i) {
    if (exec.nodes[i] != reinterpret_cast<Node*>(node)) continue;
    EXPECT_EQ(exec.now[i].params.func, params->func);
    EXPECT_EQ(exec.now[i].params.gridDimX, params->gridDimX);
    exec.now[i] = Node(*params);
    ++Driver().nodes_set;
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_VALUE;
}

CUresult Launch(CUgraphExec handle, CUstream stream) {
  FakeDriver& driver = Driver();
  if (driver.graph_launch_result != 0)
    return static_cast<CUresult>(driver.graph_launch_result.load());
  ++driver.graphs_launched;
  for (Node& node : reinterpret_cast<Exec*>(handle)->now) {
    size_t bytes = node.bytes.size();
    void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, node.bytes.data(), CU_LAUNCH_PARAM_BUFFER_SIZE,
                     &bytes, CU_LAUNCH_PARAM_END};
    const CUDA_KERNEL_NODE_PARAMS& is = node.params;
    LONGWIRE_TRY(driver.launch_kernel(is.func, is.gridDimX, is.gridDimY, is.gridDimZ, is.blockDimX,
                                      is.blockDimY, is.blockDimZ, is.sharedMemBytes, stream,
                                      nullptr, bytes != 0 ? extra : nullptr));
  }
  return CUDA_SUCCESS;
}

}  // namespace

void FillGraphs(DriverTable& table) {
  table.cuGraphCreate = [](CUgraph* graph, unsigned) {
    *graph = reinterpret_cast<CUgraph>(new Graph());
    return CUDA_SUCCESS;
  };
  table.cuGraphDestroy = [](CUgraph graph) {
    delete reinterpret_cast<Graph*>(graph);
    return CUDA_SUCCESS;
  };
  table.cuGraphExecDestroy = [](CUgraphExec exec) {
    delete reinterpret_cast<Exec*>(exec);
    --Driver().graphs_alive;
    return Driver().Note("destroy graph");
  };
  table.cuGraphAddKernelNode_v2 = &AddNode;
  table.cuGraphInstantiateWithFlags = &Instantiate;
  table.cuGraphExecKernelNodeSetParams_v2 = &SetNode;
  table.cuGraphLaunch = &Launch;
}

}  // namespace longwire::worker::testing
