// Nodes of every kind by the calls that take any kind; memory that a graph allocates, its figures,
// and nodes of memory operations.
#include <atomic>

#include "driver_graph.h"

constexpr int kCount = 300;
constexpr size_t kBytes = kCount * sizeof(int);
constexpr CUresult kInvalid = CUDA_ERROR_INVALID_VALUE;

static void CUDA_CB Count(void* data) { ++*static_cast<std::atomic<int>*>(data); }

static CUgraphNodeParams Kind(CUgraphNodeType type) {
  CUgraphNodeParams params = {};
  params.type = type;
  return params;
}

static CUgraphNode Add(CUgraph graph, std::vector<CUgraphNode> after, CUgraphNodeParams* params) {
  CUgraphNode node = nullptr;
  CHECK_DRIVER(cuGraphAddNode(&node, graph, after.data(), nullptr, after.size(), params));
  return node;
}

static CUgraphNodeParams KernelKind(GraphProgram& program, ScaleNode* scale) {
  CUDA_KERNEL_NODE_PARAMS p = scale->Params(program.scale);
  CUgraphNodeParams params = Kind(CU_GRAPH_NODE_TYPE_KERNEL);
  params.kernel.func = p.func;
  params.kernel.gridDimX = p.gridDimX;
  params.kernel.gridDimY = params.kernel.gridDimZ = 1;
  params.kernel.blockDimX = p.blockDimX;
  params.kernel.blockDimY = params.kernel.blockDimZ = 1;
  params.kernel.kernelParams = p.kernelParams;
  return params;
}

static CUgraphNodeParams AllocKind(CUdevice device, size_t bytes) {
  CUgraphNodeParams alloc = Kind(CU_GRAPH_NODE_TYPE_MEM_ALLOC);
  alloc.alloc.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  alloc.alloc.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
  alloc.alloc.bytesize = bytes;
  return alloc;
}

static CUgraphNodeParams FillKind(GraphProgram& program, CUdeviceptr memory, unsigned value) {
  CUgraphNodeParams fill = Kind(CU_GRAPH_NODE_TYPE_MEMSET);
  fill.memset.dst = memory;
  fill.memset.value = value;
  fill.memset.elementSize = 4;
  fill.memset.width = kCount;
  fill.memset.height = 1;
  fill.memset.ctx = program.context;
  return fill;
}

static CUgraphNodeParams CopyKind(GraphProgram& program, std::vector<int>& to, CUdeviceptr from) {
  CUgraphNodeParams copy = Kind(CU_GRAPH_NODE_TYPE_MEMCPY);
  copy.memcpy.copyParams = Copy1D(to.data(), from, kBytes);
  copy.memcpy.copyCtx = program.context;
  return copy;
}

// allocate → memset → kernel → copy out → host → record, and a child graph, an empty node that is
// waited behind, a free.
struct AllKinds {
  GraphProgram& program;
  std::vector<int> output = std::vector<int>(kCount);
  std::atomic<int> runs{0};
  CUevent event = nullptr, never = nullptr;
  CUgraph graph = NewGraph(), child = NewGraph();
  CUdeviceptr memory = 0;
  CUgraphNode allocated, filled, scaled, copied, nothing, freed;

  explicit AllKinds(GraphProgram& used) : program(used) {
    CHECK_DRIVER(cuEventCreate(&event, 0));
    CHECK_DRIVER(cuEventCreate(&never, 0));
    AddHost(child, {}, Count, &runs);
    CUgraphNodeParams params = AllocKind(program.device, kBytes);
    allocated = Add(graph, {}, &params);
    memory = params.alloc.dptr;
    EXPECT(memory != 0, "the graph's memory has no address");
    params = FillKind(program, memory, 5);
    filled = Add(graph, {allocated}, &params);
    ScaleNode scale{memory, memory, 7, kCount};
    params = KernelKind(program, &scale);
    scaled = Add(graph, {filled}, &params);
    params = CopyKind(program, output, memory);
    copied = Add(graph, {scaled}, &params);
    params = Kind(CU_GRAPH_NODE_TYPE_HOST);
    params.host.fn = Count;
    params.host.userData = &runs;
    CUgraphNode counted = Add(graph, {copied}, &params);
    params = Kind(CU_GRAPH_NODE_TYPE_EVENT_RECORD);
    params.eventRecord.event = event;
    Add(graph, {counted}, &params);
    params = Kind(CU_GRAPH_NODE_TYPE_GRAPH);
    params.graph.graph = child;
    Add(graph, {}, &params);
    params = Kind(CU_GRAPH_NODE_TYPE_EMPTY);
    nothing = Add(graph, {copied}, &params);
    params = Kind(CU_GRAPH_NODE_TYPE_WAIT_EVENT);
    params.eventWait.event = never;
    Add(graph, {nothing}, &params);
    params = Kind(CU_GRAPH_NODE_TYPE_MEM_FREE);
    params.free.dptr = memory;
    freed = Add(graph, {nothing}, &params);
  }
  ~AllKinds() {
    CHECK_DRIVER(cuGraphDestroy(graph));
    CHECK_DRIVER(cuGraphDestroy(child));
  }
};

static void ExpectAll(const std::vector<int>& values, int expected) {
  for (int value : values) EXPECT(value == expected, "an element is %d, not %d", value, expected);
}

static void EveryKind(GraphProgram& program) {
  AllKinds all(program);
  CUDA_MEM_ALLOC_NODE_PARAMS told = {};
  CHECK_DRIVER(cuGraphMemAllocNodeGetParams(all.allocated, &told));
  EXPECT(told.dptr == all.memory && told.bytesize == kBytes, "the memory node differs");
  CUdeviceptr freed_address = 0;
  CHECK_DRIVER(cuGraphMemFreeNodeGetParams(all.freed, &freed_address));
  EXPECT(freed_address == all.memory, "the free node differs");
  CUgraphExec exec = program.Instantiate(all.graph);
  program.Run(exec);
  ExpectAll(all.output, 5 * 7 + 3);
  EXPECT(all.runs == 2, "%d host functions ran", all.runs.load());
  CHECK_DRIVER(cuEventQuery(all.event));

  // Changed, in the executable and in the graph.
  ScaleNode stronger{all.memory, all.memory, 9, kCount};
  CUgraphNodeParams kernel = KernelKind(program, &stronger);
  CHECK_DRIVER(cuGraphExecNodeSetParams(exec, all.scaled, &kernel));
  CUgraphNodeParams fill = FillKind(all.program, all.memory, 6);
  CHECK_DRIVER(cuGraphExecNodeSetParams(exec, all.filled, &fill));
  program.Run(exec);
  ExpectAll(all.output, 6 * 9 + 3);
  std::vector<int> second(kCount);
  CUgraphNodeParams copy = CopyKind(program, second, all.memory);
  CHECK_DRIVER(cuGraphNodeSetParams(all.copied, &copy));
  CHECK_DRIVER(cuGraphNodeSetParams(all.filled, &fill));
  CUgraphExecUpdateResultInfo info = {};
  CHECK_DRIVER(cuGraphExecUpdate(exec, all.graph, &info));
  program.Run(exec);
  ExpectAll(second, 6 * 7 + 3);
  EXPECT(all.runs == 6, "%d host functions ran", all.runs.load());
  REFUSED(kInvalid, cuGraphExecNodeSetParams(nullptr, all.scaled, &kernel));
  CHECK_DRIVER(cuGraphExecDestroy(exec));
}

static void Refusals(GraphProgram& program) {
  AllKinds all(program);
  CUgraphNodeParams copy = CopyKind(program, all.output, all.memory);
  REFUSED(kInvalid, cuGraphNodeSetParams(all.scaled, &copy));  // another kind
  REFUSED(kInvalid, cuGraphNodeSetParams(all.scaled, nullptr));
  CUgraphNode node = nullptr;
  CUgraphNodeParams unknown = Kind(static_cast<CUgraphNodeType>(999));
  CUgraphNodeParams empty = Kind(CU_GRAPH_NODE_TYPE_EMPTY);
  REFUSED(kInvalid, cuGraphAddNode(&node, all.graph, nullptr, nullptr, 0, nullptr));
  REFUSED(kInvalid, cuGraphAddNode(nullptr, all.graph, nullptr, nullptr, 0, &empty));
  REFUSED(kInvalid, cuGraphAddNode(&node, nullptr, nullptr, nullptr, 0, &empty));
  EXPECT(cuGraphAddNode(&node, all.graph, nullptr, nullptr, 0, &unknown) != CUDA_SUCCESS,
         "a node of an unknown kind was taken");
  CUgraphNodeParams alloc = AllocKind(program.device, 0);
  REFUSED(kInvalid, cuGraphAddNode(&node, all.graph, nullptr, nullptr, 0, &alloc));
  CUDA_MEM_ALLOC_NODE_PARAMS told = {};
  REFUSED(kInvalid, cuGraphMemAllocNodeGetParams(all.scaled, &told));
  REFUSED(kInvalid, cuGraphMemAllocNodeGetParams(all.allocated, nullptr));
}

static void Figures(GraphProgram& program) {
  CUdevice device = program.device;
  cuuint64_t high = 0, zero = 0, one = 1;
  constexpr auto kHigh = CU_GRAPH_MEM_ATTR_USED_MEM_HIGH;
  constexpr auto kCurrent = CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT;
  CHECK_DRIVER(cuDeviceGetGraphMemAttribute(device, kHigh, &high));
  EXPECT(high >= kBytes, "at most %llu bytes were used", static_cast<unsigned long long>(high));
  CHECK_DRIVER(cuDeviceGraphMemTrim(device));
  CHECK_DRIVER(cuDeviceSetGraphMemAttribute(device, kHigh, &zero));
  cuuint64_t current = 0;
  CHECK_DRIVER(cuDeviceGetGraphMemAttribute(device, kHigh, &high));
  CHECK_DRIVER(cuDeviceGetGraphMemAttribute(device, kCurrent, &current));
  EXPECT(high == current, "the mark stands at %llu, used are %llu",
         static_cast<unsigned long long>(high), static_cast<unsigned long long>(current));
  REFUSED(kInvalid, cuDeviceSetGraphMemAttribute(device, kCurrent, &zero));
  REFUSED(kInvalid, cuDeviceSetGraphMemAttribute(device, kHigh, &one));
  REFUSED(kInvalid,
          cuDeviceGetGraphMemAttribute(device, static_cast<CUgraphMem_attribute>(77), &high));
  REFUSED(kInvalid, cuDeviceGetGraphMemAttribute(device, kCurrent, nullptr));
  REFUSED(CUDA_ERROR_INVALID_DEVICE, cuDeviceGetGraphMemAttribute(4711, kCurrent, &high));
}

static CUstreamBatchMemOpParams Write(CUdeviceptr address, unsigned value) {
  CUstreamBatchMemOpParams write = {};
  write.writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
  write.writeValue.address = address;
  write.writeValue.value = value;
  return write;
}

static void MemoryOperations(GraphProgram& program) {
  CUdeviceptr flags = program.Allocate(4);
  CUstreamBatchMemOpParams wait = {};
  wait.waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
  wait.waitValue.address = flags;
  wait.waitValue.value = 1;
  wait.waitValue.flags = CU_STREAM_WAIT_VALUE_GEQ;
  CUstreamBatchMemOpParams operations[] = {wait, Write(flags + 4, 11), Write(flags + 8, 12)};
  CUDA_BATCH_MEM_OP_NODE_PARAMS params = {}, told = {};
  params.ctx = program.context;
  params.count = 3;
  params.paramArray = operations;
  CUgraph graph = NewGraph();
  CUgraphNode node = nullptr, empty = nullptr, wrong = nullptr;
  CHECK_DRIVER(cuGraphAddBatchMemOpNode(&node, graph, nullptr, 0, &params));
  CHECK_DRIVER(cuGraphAddEmptyNode(&empty, graph, nullptr, 0));
  CHECK_DRIVER(cuGraphBatchMemOpNodeGetParams(node, &told));
  EXPECT(told.count == 3 && told.paramArray[1].writeValue.address == flags + 4 &&
             told.paramArray[1].writeValue.value == 11,
         "the node differs");
  CUgraphExec exec = program.Instantiate(graph);
  CUstream other;
  CHECK_DRIVER(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
  CHECK_DRIVER(cuGraphLaunch(exec, program.stream));
  REFUSED(CUDA_ERROR_NOT_READY, cuStreamQuery(program.stream));
  CHECK_DRIVER(cuStreamWriteValue32(other, flags, 1, 0));
  CHECK_DRIVER(cuStreamSynchronize(program.stream));
  int values[4];
  CHECK_DRIVER(cuMemcpyDtoH(values, flags, sizeof values));
  EXPECT(values[1] == 11 && values[2] == 12, "written were %d and %d", values[1], values[2]);
  operations[1] = Write(flags + 4, 21);
  CHECK_DRIVER(cuGraphExecBatchMemOpNodeSetParams(exec, node, &params));
  operations[1] = Write(flags + 4, 31);
  CHECK_DRIVER(cuGraphBatchMemOpNodeSetParams(node, &params));
  program.Run(exec);
  CHECK_DRIVER(cuMemcpyDtoH(values, flags, sizeof values));
  EXPECT(values[1] == 21, "the executable wrote %d", values[1]);
  CHECK_DRIVER(cuGraphExecDestroy(exec));
  exec = program.Instantiate(graph);
  program.Run(exec);
  CHECK_DRIVER(cuMemcpyDtoH(values, flags, sizeof values));
  EXPECT(values[1] == 31, "the changed graph wrote %d", values[1]);

  REFUSED(kInvalid, cuGraphAddBatchMemOpNode(nullptr, graph, nullptr, 0, &params));
  REFUSED(kInvalid, cuGraphAddBatchMemOpNode(&wrong, graph, nullptr, 0, nullptr));
  REFUSED(kInvalid, cuGraphBatchMemOpNodeGetParams(empty, &told));
  REFUSED(kInvalid, cuGraphBatchMemOpNodeGetParams(node, nullptr));
  REFUSED(kInvalid, cuGraphBatchMemOpNodeSetParams(empty, &params));
  REFUSED(kInvalid, cuGraphExecBatchMemOpNodeSetParams(exec, empty, &params));
  operations[1] = Write(flags + 2, 1);
  EXPECT_OF_MISTAKE(cuGraphAddBatchMemOpNode(&wrong, graph, nullptr, 0, &params) == kInvalid,
                    "an address that is not aligned");
  operations[1] = Write(0x1000, 1);
  EXPECT_OF_MISTAKE(cuGraphAddBatchMemOpNode(&wrong, graph, nullptr, 0, &params) == kInvalid,
                    "nobody's memory");
  CHECK_DRIVER(cuGraphExecDestroy(exec));
  CHECK_DRIVER(cuGraphDestroy(graph));
}

int main() {
  GraphProgram program;
  EveryKind(program);
  Refusals(program);
  Figures(program);
  MemoryOperations(program);
  std::printf("PASS driver_graph_kinds\n");
  return 0;
}
