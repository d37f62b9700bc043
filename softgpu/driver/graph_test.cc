// Graphs built by hand: structure, replay, changes to executables.
#include "softgpu/driver/test_device.h"

namespace softgpu {
namespace {

class GraphTest : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    module_ = LoadKernels();
    stream_ = NewStream();
    ASSERT_CU(cuGraphCreate(&graph_, 0));
    ASSERT_CU(cuMemAlloc(&data_, 4096));
  }
  CUDA_KERNEL_NODE_PARAMS KernelParams(const char* name, void** parameters) {
    CUDA_KERNEL_NODE_PARAMS params = {};
    params.func = Function(module_, name);
    params.gridDimX = params.gridDimY = params.gridDimZ = 1;
    params.blockDimX = params.blockDimY = params.blockDimZ = 1;
    params.kernelParams = parameters;
    return params;
  }
  CUgraphNode AddStore(CUdeviceptr target, unsigned value, std::vector<CUgraphNode> after = {}) {
    void* parameters[] = {&target, &value};
    auto params = KernelParams("Store", parameters);
    CUgraphNode node = nullptr;
    EXPECT_CU(cuGraphAddKernelNode(&node, graph_, after.data(), after.size(), &params));
    return node;
  }
  CUDA_MEMSET_NODE_PARAMS FillParams(unsigned value, size_t words) {
    return {data_, 0, value, 4, words, 1};
  }
  CUgraphNode AddIncrement(std::vector<CUgraphNode> after) {
    void* parameters[] = {&data_};
    auto params = KernelParams("Increment", parameters);
    params.blockDimX = 32;
    CUgraphNode node = nullptr;
    EXPECT_CU(cuGraphAddKernelNode(&node, graph_, after.data(), after.size(), &params));
    return node;
  }
  CUgraphExec Instantiate() {
    CUgraphExec exec = nullptr;
    EXPECT_CU(cuGraphInstantiateWithFlags(&exec, graph_, 0));
    return exec;
  }
  void Launch(CUgraphExec exec) {
    ASSERT_CU(cuGraphLaunch(exec, stream_));
    ASSERT_CU(cuStreamSynchronize(stream_));
  }
  unsigned Word(size_t index = 0) {
    unsigned value = 0;
    EXPECT_CU(cuMemcpyDtoH(&value, data_ + 4 * index, 4));
    return value;
  }

  CUmodule module_ = nullptr;
  CUstream stream_ = nullptr;
  CUgraph graph_ = nullptr;
  CUdeviceptr data_ = 0;
};

TEST_F(GraphTest, ReplaysInDependencyOrder) {
  // Added in the wrong order on purpose: the edge decides.
  CUgraphNode increment = AddIncrement({}), fill = nullptr;
  auto params = FillParams(5, 4);
  ASSERT_CU(cuGraphAddMemsetNode(&fill, graph_, nullptr, 0, &params, context_));
  ASSERT_CU(cuGraphAddDependencies_v2(graph_, &fill, &increment, nullptr, 1));
  CUgraphExec exec = Instantiate();
  ASSERT_CU(cuGraphDestroy(graph_));  // the executable stands alone
  for (int i = 0; i < 3; ++i) {
    Launch(exec);
    EXPECT_EQ(Word(), 37u);
  }
  EXPECT_CU(cuGraphExecDestroy(exec));
  EXPECT_EQ(cuGraphLaunch(exec, stream_), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(GraphTest, LaunchesAreAsynchronousAndOrderedInTheirStream) {
  AddStore(data_, 3);
  CUgraphExec exec = Instantiate();
  auto* flag = NewFlag();
  ASSERT_CU(cuMemsetD32(data_, 0, 1));
  ASSERT_CU(cuCtxSynchronize());
  ASSERT_CU(cuStreamWaitValue32(stream_, Address(flag), 1, 0));
  ASSERT_CU(cuGraphLaunch(exec, stream_));
  ASSERT_CU(cuMemsetD32Async(data_ + 4, 4, 1, stream_));
  Pause();
  EXPECT_EQ(Word(), 0u);
  __atomic_store_n(const_cast<uint32_t*>(flag), 1, __ATOMIC_RELEASE);
  ASSERT_CU(cuStreamSynchronize(stream_));
  EXPECT_EQ(Word(), 3u);
  EXPECT_EQ(Word(1), 4u);
}

TEST_F(GraphTest, HostMemoryIsReadAtEveryLaunch) {
  unsigned source = 1, target = 0;
  CUDA_MEMCPY3D up = {};
  up.srcMemoryType = CU_MEMORYTYPE_HOST;
  up.srcHost = &source;
  up.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  up.dstDevice = data_;
  up.WidthInBytes = 4;
  up.Height = up.Depth = 1;
  CUDA_MEMCPY3D down = up;
  down.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  down.srcDevice = data_;
  down.dstMemoryType = CU_MEMORYTYPE_HOST;
  down.dstHost = &target;
  CUgraphNode first = nullptr, last = nullptr, host = nullptr;
  ASSERT_CU(cuGraphAddMemcpyNode(&first, graph_, nullptr, 0, &up, context_));
  CUgraphNode middle = AddIncrement({first});
  ASSERT_CU(cuGraphAddMemcpyNode(&last, graph_, &middle, 1, &down, context_));
  int calls = 0;
  CUDA_HOST_NODE_PARAMS count = {[](void* p) { ++*static_cast<int*>(p); }, &calls};
  ASSERT_CU(cuGraphAddHostNode(&host, graph_, &last, 1, &count));
  CUgraphExec exec = Instantiate();
  Launch(exec);
  EXPECT_EQ(target, 33u);
  source = 10;
  Launch(exec);
  EXPECT_EQ(target, 42u);
  EXPECT_EQ(calls, 2);
}

TEST_F(GraphTest, StructureCanBeRead) {
  CUgraphNode a = AddStore(data_, 1), b = AddIncrement({a}), c = nullptr;
  std::vector<CUgraphNode> both{a, b};
  ASSERT_CU(cuGraphAddEmptyNode(&c, graph_, both.data(), 2));
  size_t count = 0;
  ASSERT_CU(cuGraphGetNodes(graph_, nullptr, &count));
  EXPECT_EQ(count, 3u);
  CUgraphNode nodes[5], from[5], to[5];
  count = 5;
  ASSERT_CU(cuGraphGetRootNodes(graph_, nodes, &count));
  EXPECT_EQ(count, 1u);
  EXPECT_EQ(nodes[0], a);
  EXPECT_EQ(nodes[4], nullptr);
  count = 5;
  ASSERT_CU(cuGraphGetEdges_v2(graph_, from, to, nullptr, &count));
  EXPECT_EQ(count, 3u);
  count = 5;
  ASSERT_CU(cuGraphNodeGetDependentNodes_v2(a, nodes, nullptr, &count));
  EXPECT_EQ(count, 2u);
  CUgraphNodeType type;
  ASSERT_CU(cuGraphNodeGetType(c, &type));
  EXPECT_EQ(type, CU_GRAPH_NODE_TYPE_EMPTY);
  CUDA_KERNEL_NODE_PARAMS params = {};
  ASSERT_CU(cuGraphKernelNodeGetParams(a, &params));
  EXPECT_EQ(*static_cast<unsigned*>(params.kernelParams[1]), 1u);
  ASSERT_CU(cuGraphDestroyNode(b));
  ASSERT_CU(cuGraphGetNodes(graph_, nullptr, &count));
  EXPECT_EQ(count, 2u);
  EXPECT_EQ(cuGraphNodeGetType(b, &type), CUDA_ERROR_INVALID_VALUE);
  ASSERT_CU(cuGraphAddDependencies_v2(graph_, &c, &a, nullptr, 1));  // a cycle
  CUgraphExec exec = nullptr;
  EXPECT_EQ(cuGraphInstantiateWithFlags(&exec, graph_, 0), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(GraphTest, ExecutablesCanBeChanged) {
  CUgraphNode store = AddStore(data_, 1);
  CUgraphExec exec = Instantiate();
  unsigned value = 2;
  void* parameters[] = {&data_, &value};
  auto params = KernelParams("Store", parameters);
  ASSERT_CU(cuGraphExecKernelNodeSetParams(exec, store, &params));
  value = 9;  // parameters were copied
  Launch(exec);
  EXPECT_EQ(Word(), 2u);
  ASSERT_CU(cuGraphKernelNodeSetParams(store, &params));  // the graph, not the executable
  Launch(exec);
  EXPECT_EQ(Word(), 2u);
  CUgraphExecUpdateResultInfo info = {};
  ASSERT_CU(cuGraphExecUpdate_v2(exec, graph_, &info));
  Launch(exec);
  EXPECT_EQ(Word(), 9u);
  ASSERT_CU(cuMemsetD32(data_, 0, 1));
  ASSERT_CU(cuCtxSynchronize());
  ASSERT_CU(cuGraphNodeSetEnabled(exec, store, 0));
  Launch(exec);
  EXPECT_EQ(Word(), 0u);
  AddIncrement({});
  EXPECT_EQ(cuGraphExecUpdate_v2(exec, graph_, &info), CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
  EXPECT_EQ(info.result, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
}

TEST_F(GraphTest, ChildGraphsAndClones) {
  AddStore(data_, 4);
  CUgraph parent = nullptr, clone = nullptr, inner = nullptr;
  ASSERT_CU(cuGraphCreate(&parent, 0));
  CUgraphNode child = nullptr, copy = nullptr;
  ASSERT_CU(cuGraphAddChildGraphNode(&child, parent, nullptr, 0, graph_));
  ASSERT_CU(cuGraphChildGraphNodeGetGraph(child, &inner));
  EXPECT_NE(inner, graph_);
  EXPECT_EQ(cuGraphDestroy(inner), CUDA_ERROR_INVALID_VALUE);
  ASSERT_CU(cuGraphClone(&clone, parent));
  ASSERT_CU(cuGraphNodeFindInClone(&copy, child, clone));
  ASSERT_CU(cuGraphDestroy(parent));
  ASSERT_CU(cuGraphDestroy(graph_));
  graph_ = clone;
  Launch(Instantiate());
  EXPECT_EQ(Word(), 4u);
}

TEST_F(GraphTest, EventNodesOrderAgainstOtherStreams) {
  CUevent gate = nullptr, done = nullptr;
  ASSERT_CU(cuEventCreate(&gate, CU_EVENT_DISABLE_TIMING));
  ASSERT_CU(cuEventCreate(&done, CU_EVENT_DISABLE_TIMING));
  CUgraphNode wait = nullptr, record = nullptr;
  ASSERT_CU(cuGraphAddEventWaitNode(&wait, graph_, nullptr, 0, gate));
  CUgraphNode store = AddStore(data_, 6, {wait});
  ASSERT_CU(cuGraphAddEventRecordNode(&record, graph_, &store, 1, done));
  CUgraphExec exec = Instantiate();
  CUstream other = NewStream();
  auto* flag = NewFlag();
  ASSERT_CU(cuMemsetD32(data_, 0, 1));
  ASSERT_CU(cuCtxSynchronize());
  ASSERT_CU(cuStreamWaitValue32(other, Address(flag), 1, 0));
  ASSERT_CU(cuEventRecord(gate, other));
  ASSERT_CU(cuGraphLaunch(exec, stream_));
  EXPECT_EQ(cuEventQuery(done), CUDA_ERROR_NOT_READY);
  __atomic_store_n(const_cast<uint32_t*>(flag), 1, __ATOMIC_RELEASE);
  EXPECT_CU(cuEventSynchronize(done));
  EXPECT_EQ(Word(), 6u);
}

// It would contain itself without end.
TEST_F(GraphTest, AGraphIsNotGivenAwayToOneWithinIt) {
  CUgraph inner = nullptr;
  ASSERT_CU(cuGraphCreate(&inner, 0));
  CUgraphNode node = nullptr;
  CUgraphNodeParams params{};
  params.type = CU_GRAPH_NODE_TYPE_GRAPH;
  params.graph.graph = inner;
  params.graph.ownership = CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE;
  ASSERT_CU(cuGraphAddNode_v2(&node, graph_, nullptr, nullptr, 0, &params));
  params.graph.graph = graph_;
  EXPECT_EQ(cuGraphAddNode_v2(&node, inner, nullptr, nullptr, 0, &params),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_CU(cuGraphDestroy(graph_));
}

}  // namespace
}  // namespace softgpu
