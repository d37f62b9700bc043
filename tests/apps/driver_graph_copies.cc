// Copy nodes of graphs that the program builds: memory of the program is read and written at every
// launch, also through clones, child graphs, changed and updated executables.
#include "driver_graph.h"

constexpr int kCount = 1000;
constexpr size_t kBytes = kCount * sizeof(int);

static std::vector<int> Ramp(int start) {
  std::vector<int> values(kCount);
  for (int i = 0; i < kCount; ++i) values[i] = start + i;
  return values;
}

static void ExpectScaled(const std::vector<int>& output, const std::vector<int>& input, int factor,
                         const char* where) {
  for (int i = 0; i < kCount; ++i) {
    EXPECT(output[i] == input[i] * factor + 3, "%s: element %d is %d, not %d", where, i, output[i],
           input[i] * factor + 3);
  }
}

// input → device → kernel → device → output, as one graph.
struct Pipeline {
  std::vector<int> input = Ramp(1), output = std::vector<int>(kCount);
  CUdeviceptr in, out;
  CUgraph graph = NewGraph();
  CUgraphNode upload, kernel, download;

  explicit Pipeline(GraphProgram& program)
      : in(program.Allocate(kCount)), out(program.Allocate(kCount)) {
    upload = AddCopy(graph, {}, Copy1D(in, input.data(), kBytes), program.context);
    kernel = AddScale(graph, {upload}, program.scale, in, out, 2, kCount);
    download = AddCopy(graph, {kernel}, Copy1D(output.data(), out, kBytes), program.context);
  }
};

static void EveryLaunchReadsAgain(GraphProgram& program) {
  Pipeline pipeline(program);
  CUgraphExec exec = program.Instantiate(pipeline.graph);
  for (int launch = 0; launch < 4; ++launch) {
    for (int i = 0; i < kCount; ++i) pipeline.input[i] = launch * 7 + i;
    program.Run(exec);
    ExpectScaled(pipeline.output, pipeline.input, 2, "launch");
  }
  // The graph may go before its executable.
  CHECK_DRIVER(cuGraphDestroy(pipeline.graph));
  pipeline.input[0] = 12345;
  program.Run(exec);
  ExpectScaled(pipeline.output, pipeline.input, 2, "after the graph's end");
  CHECK_DRIVER(cuGraphExecDestroy(exec));
}

static void ClonesAndChildren(GraphProgram& program) {
  Pipeline pipeline(program);
  CUgraph clone = nullptr, parent = NewGraph();
  CHECK_DRIVER(cuGraphClone(&clone, pipeline.graph));
  CUgraphNode child = nullptr;
  CHECK_DRIVER(cuGraphAddChildGraphNode(&child, parent, nullptr, 0, pipeline.graph));
  CHECK_DRIVER(cuGraphDestroy(pipeline.graph));
  CUgraphExec of_clone = program.Instantiate(clone), of_parent = program.Instantiate(parent);
  program.Run(of_clone);
  ExpectScaled(pipeline.output, pipeline.input, 2, "clone");
  pipeline.input[5] = -77;
  program.Run(of_parent);
  ExpectScaled(pipeline.output, pipeline.input, 2, "child graph");
  // A node of the clone is its own.
  CUgraphNode nodes[8];
  size_t count = 8;
  CHECK_DRIVER(cuGraphGetNodes(clone, nodes, &count));
  EXPECT(count == 3, "the clone has %zu nodes", count);
  std::vector<int> other(kCount);
  for (size_t i = 0; i < count; ++i) {
    CUDA_MEMCPY3D told;
    if (cuGraphMemcpyNodeGetParams(nodes[i], &told) != CUDA_SUCCESS) continue;
    if (told.dstMemoryType != CU_MEMORYTYPE_HOST) continue;
    EXPECT(told.dstHost == pipeline.output.data(), "the clone writes to %p", told.dstHost);
    told.dstHost = other.data();
    CHECK_DRIVER(cuGraphMemcpyNodeSetParams(nodes[i], &told));
  }
  CUgraphExec changed = program.Instantiate(clone);
  pipeline.input[6] = 99;
  std::vector<int> before = pipeline.output;
  program.Run(changed);
  ExpectScaled(other, pipeline.input, 2, "changed clone");
  EXPECT(pipeline.output == before, "the changed clone wrote to the old place, too");
  CHECK_DRIVER(cuGraphExecUpdate(of_parent, parent, [] {
    static CUgraphExecUpdateResultInfo info;
    return &info;
  }()));
  program.Run(of_parent);
  ExpectScaled(pipeline.output, pipeline.input, 2, "updated parent");
  for (CUgraphExec exec : {of_clone, of_parent, changed}) CHECK_DRIVER(cuGraphExecDestroy(exec));
  CHECK_DRIVER(cuGraphDestroy(clone));
  CHECK_DRIVER(cuGraphDestroy(parent));
}

static void ChangedParameters(GraphProgram& program) {
  Pipeline pipeline(program);
  CUgraphExec exec = program.Instantiate(pipeline.graph);
  std::vector<int> second = Ramp(5000), result(kCount);
  // In the executable: the graph keeps its own.
  CUDA_MEMCPY3D copy = Copy1D(pipeline.in, second.data(), kBytes);
  CHECK_DRIVER(cuGraphExecMemcpyNodeSetParams(exec, pipeline.upload, &copy, program.context));
  program.Run(exec);
  ExpectScaled(pipeline.output, second, 2, "changed executable");
  CUDA_MEMCPY3D told = {};
  CHECK_DRIVER(cuGraphMemcpyNodeGetParams(pipeline.upload, &told));
  EXPECT(told.srcMemoryType == CU_MEMORYTYPE_HOST && told.srcHost == pipeline.input.data() &&
             told.dstDevice == pipeline.in && told.WidthInBytes == kBytes,
         "the node has %p → %llx, %zu bytes", told.srcHost, told.dstDevice, told.WidthInBytes);
  // In the graph: the executable keeps its own, until it is updated.
  copy = Copy1D(result.data(), pipeline.out, kBytes);
  CHECK_DRIVER(cuGraphMemcpyNodeSetParams(pipeline.download, &copy));
  second[9] = 1;
  program.Run(exec);
  ExpectScaled(pipeline.output, second, 2, "executable after a change of the graph");
  EXPECT(result == std::vector<int>(kCount), "the executable wrote to the graph's new place");
  CUgraphExecUpdateResultInfo info = {};
  CHECK_DRIVER(cuGraphExecUpdate(exec, pipeline.graph, &info));
  program.Run(exec);
  ExpectScaled(result, pipeline.input, 2, "updated executable");
  CHECK_DRIVER(cuGraphExecDestroy(exec));
  CHECK_DRIVER(cuGraphDestroy(pipeline.graph));
}

// A part of one slice-and-row grid into another, and back.
static void ThreeDimensions(GraphProgram& program) {
  constexpr size_t kWidth = 40, kRows = 6, kSlices = 3, kPitch = 64, kHeight = 8;
  std::vector<unsigned char> from(kPitch * kHeight * kSlices), to(from.size(), 0xee);
  for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<unsigned char>(i * 31 + i / 256);
  CUdeviceptr device = program.Allocate(4096);
  CUgraph graph = NewGraph();
  CUDA_MEMCPY3D up = Copy1D(device, from.data(), kWidth);
  up.srcPitch = up.dstPitch = kPitch;
  up.srcHeight = up.dstHeight = kHeight;
  up.Height = kRows;
  up.Depth = kSlices;
  up.srcXInBytes = up.dstXInBytes = 8;
  up.srcY = up.dstY = 1;
  CUDA_MEMCPY3D down = up;
  SetSource(&down, device);
  SetDestination(&down, to.data());
  CUgraphNode first = AddCopy(graph, {}, up, program.context);
  AddCopy(graph, {first}, down, program.context);
  CUgraphExec exec = program.Instantiate(graph);
  program.Run(exec);
  for (size_t i = 0; i < to.size(); ++i) {
    size_t x = i % kPitch, y = i / kPitch % kHeight;
    bool inside = x >= 8 && x < 8 + kWidth && y >= 1 && y < 1 + kRows;
    unsigned char expected = inside ? from[i] : 0xee;
    EXPECT(to[i] == expected, "byte %zu is %d, not %d", i, to[i], expected);
  }
  CHECK_DRIVER(cuGraphExecDestroy(exec));
  CHECK_DRIVER(cuGraphDestroy(graph));
}

// What one copy writes into the program's memory, the next one reads there.
static void ThroughTheProgramsMemory(GraphProgram& program) {
  std::vector<int> start = Ramp(10), middle(kCount), end(kCount);
  CUdeviceptr a = program.Allocate(kCount), b = program.Allocate(kCount);
  CUgraph graph = NewGraph();
  CUgraphNode up = AddCopy(graph, {}, Copy1D(a, start.data(), kBytes), program.context);
  CUgraphNode kernel = AddScale(graph, {up}, program.scale, a, a, 3, kCount);
  CUgraphNode out = AddCopy(graph, {kernel}, Copy1D(middle.data(), a, kBytes), program.context);
  CUgraphNode back =
      AddCopy(graph, {out}, Copy1D(b, middle.data() + 10, kBytes - 40), program.context);
  AddCopy(graph, {back}, Copy1D(end.data(), b, kBytes), program.context);
  // Between two places of the program.
  std::vector<int> copied(kCount);
  AddCopy(graph, {}, Copy1D(copied.data(), start.data(), kBytes), program.context);
  CUgraphExec exec = program.Instantiate(graph);
  for (int launch = 0; launch < 2; ++launch) {
    start[20] = 1000 + launch;
    program.Run(exec);
    ExpectScaled(middle, start, 3, "memory in the middle");
    for (int i = 0; i + 10 < kCount; ++i) {
      EXPECT(end[i] == middle[i + 10], "element %d is %d, not %d", i, end[i], middle[i + 10]);
    }
    EXPECT(copied == start, "the copy within the program's memory is another");
  }
  CHECK_DRIVER(cuGraphExecDestroy(exec));
  CHECK_DRIVER(cuGraphDestroy(graph));
}

// Two copies write the halves of what a third one reads.
static void GatheredInTheProgramsMemory(GraphProgram& program) {
  std::vector<int> start = Ramp(3), middle(kCount), end(kCount);
  CUdeviceptr a = program.Allocate(kCount), b = program.Allocate(kCount);
  CUgraph graph = NewGraph();
  CUgraphNode up = AddCopy(graph, {}, Copy1D(a, start.data(), kBytes), program.context);
  CUgraphNode kernel = AddScale(graph, {up}, program.scale, a, a, 5, kCount);
  size_t half = kBytes / 2;
  CUgraphNode low = AddCopy(graph, {kernel}, Copy1D(middle.data(), a, half), program.context);
  CUgraphNode high =
      AddCopy(graph, {kernel}, Copy1D(middle.data() + kCount / 2, a + half, half), program.context);
  CUgraphNode back = AddCopy(graph, {low, high}, Copy1D(b, middle.data(), kBytes), program.context);
  AddCopy(graph, {back}, Copy1D(end.data(), b, kBytes), program.context);
  CUgraphExec exec = program.Instantiate(graph);
  for (int launch = 0; launch < 3; ++launch) {
    start[kCount - 1] = launch;
    program.Run(exec);
    ExpectScaled(middle, start, 5, "both halves");
    ExpectScaled(end, start, 5, "gathered");
  }
  CHECK_DRIVER(cuGraphExecDestroy(exec));
  CHECK_DRIVER(cuGraphDestroy(graph));
}

static void Refusals(GraphProgram& program) {
  Pipeline pipeline(program);
  CUDA_MEMCPY3D copy = Copy1D(pipeline.in, pipeline.input.data(), kBytes), told;
  CUgraphNode node = nullptr;
  CUcontext context = program.context;
  constexpr CUresult kInvalid = CUDA_ERROR_INVALID_VALUE;
  REFUSED(kInvalid, cuGraphAddMemcpyNode(nullptr, pipeline.graph, nullptr, 0, &copy, context));
  REFUSED(kInvalid, cuGraphAddMemcpyNode(&node, nullptr, nullptr, 0, &copy, context));
  REFUSED(kInvalid, cuGraphAddMemcpyNode(&node, pipeline.graph, nullptr, 1, &copy, context));
  REFUSED(kInvalid, cuGraphAddMemcpyNode(&node, pipeline.graph, nullptr, 0, nullptr, context));
  REFUSED(kInvalid, cuGraphMemcpyNodeGetParams(pipeline.kernel, &told));
  REFUSED(kInvalid, cuGraphMemcpyNodeGetParams(pipeline.upload, nullptr));
  REFUSED(kInvalid, cuGraphMemcpyNodeGetParams(nullptr, &told));
  REFUSED(kInvalid, cuGraphMemcpyNodeSetParams(pipeline.kernel, &copy));
  CUDA_MEMCPY3D wrong = copy;
  wrong.dstDevice = pipeline.in + kBytes * 1000000;  // beyond what is allocated
  REFUSED(kInvalid, cuGraphAddMemcpyNode(&node, pipeline.graph, nullptr, 0, &wrong, context));
  wrong = copy;
  wrong.srcMemoryType = static_cast<CUmemorytype>(77);
  REFUSED(kInvalid, cuGraphAddMemcpyNode(&node, pipeline.graph, nullptr, 0, &wrong, context));
  REFUSED(kInvalid, cuGraphMemcpyNodeSetParams(pipeline.upload, &wrong));
  CUgraphExec exec = program.Instantiate(pipeline.graph);
  REFUSED(kInvalid, cuGraphExecMemcpyNodeSetParams(nullptr, pipeline.upload, &copy, context));
  REFUSED(kInvalid, cuGraphExecMemcpyNodeSetParams(exec, pipeline.kernel, &copy, context));
  Pipeline stranger(program);
  REFUSED(kInvalid, cuGraphExecMemcpyNodeSetParams(exec, stranger.upload, &copy, context));
  // The refused changes have left everything as it was.
  program.Run(exec);
  ExpectScaled(pipeline.output, pipeline.input, 2, "after refusals");
  CHECK_DRIVER(cuGraphExecDestroy(exec));
  CHECK_DRIVER(cuGraphDestroy(pipeline.graph));
  CHECK_DRIVER(cuGraphDestroy(stranger.graph));
}

int main() {
  GraphProgram program;
  EveryLaunchReadsAgain(program);
  ClonesAndChildren(program);
  ChangedParameters(program);
  ThreeDimensions(program);
  ThroughTheProgramsMemory(program);
  GatheredInTheProgramsMemory(program);
  Refusals(program);
  std::printf("PASS driver_graph_copies\n");
  return 0;
}
