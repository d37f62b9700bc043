// Event nodes of graphs: every launch records its events and waits for others, built and captured.
#include "driver_graph.h"

constexpr int kCount = 256;

static CUgraphNode AddRecord(CUgraph graph, std::vector<CUgraphNode> after, CUevent event) {
  CUgraphNode node = nullptr;
  CHECK_DRIVER(cuGraphAddEventRecordNode(&node, graph, after.data(), after.size(), event));
  return node;
}

static CUgraphNode AddWait(CUgraph graph, std::vector<CUgraphNode> after, CUevent event) {
  CUgraphNode node = nullptr;
  CHECK_DRIVER(cuGraphAddEventWaitNode(&node, graph, after.data(), after.size(), event));
  return node;
}

static int First(CUdeviceptr memory) {
  int value = 0;
  CHECK_DRIVER(cuMemcpyDtoH(&value, memory, sizeof value));
  return value;
}

static CUevent NewEvent(unsigned flags = CU_EVENT_DEFAULT) {
  CUevent event = nullptr;
  CHECK_DRIVER(cuEventCreate(&event, flags));
  return event;
}

// A graph in one stream records what another stream waits for, and the other way round.
static void BetweenStreams(GraphProgram& program) {
  CUstream other;
  CHECK_DRIVER(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
  CUdeviceptr a = program.Allocate(kCount), b = program.Allocate(kCount);
  CUdeviceptr flag = program.Allocate(1);
  CUevent done = NewEvent(), start = NewEvent();
  CUgraph graph = NewGraph();
  CUgraphNode wait = AddWait(graph, {}, start);
  CUgraphNode kernel = AddScale(graph, {wait}, program.scale, a, b, 2, kCount);
  CUgraphNode record = AddRecord(graph, {kernel}, done);
  CUevent told = nullptr;
  CHECK_DRIVER(cuGraphEventRecordNodeGetEvent(record, &told));
  EXPECT(told == done, "the record node has another event");
  CHECK_DRIVER(cuGraphEventWaitNodeGetEvent(wait, &told));
  EXPECT(told == start, "the wait node has another event");
  CUgraphExec exec = program.Instantiate(graph);
  for (int round = 1; round <= 3; ++round) {
    // The graph has to wait for the other stream, which waits for the flag.
    CHECK_DRIVER(cuMemsetD32(flag, 0, 1));
    CHECK_DRIVER(cuCtxSynchronize());
    CHECK_DRIVER(cuStreamWaitValue32(other, flag, 1, CU_STREAM_WAIT_VALUE_EQ));
    CHECK_DRIVER(cuMemsetD32Async(a, round, kCount, other));
    CHECK_DRIVER(cuEventRecord(start, other));
    CHECK_DRIVER(cuGraphLaunch(exec, program.stream));
    REFUSED(CUDA_ERROR_NOT_READY, cuEventQuery(done));
    CUdeviceptr c = b;
    CHECK_DRIVER(cuStreamWaitEvent(other, done, 0));
    ScaleNode again{c, c, 10, kCount};
    CHECK_DRIVER(
        cuLaunchKernel(program.scale, 4, 1, 1, 64, 1, 1, 0, other, again.arguments, nullptr));
    CUstream third;
    CHECK_DRIVER(cuStreamCreate(&third, CU_STREAM_NON_BLOCKING));
    CHECK_DRIVER(cuStreamWriteValue32(third, flag, 1, 0));
    CHECK_DRIVER(cuEventSynchronize(done));
    CHECK_DRIVER(cuStreamSynchronize(other));
    CHECK_DRIVER(cuEventQuery(done));
    int expected = (round * 2 + 3) * 10 + 3;
    EXPECT(First(b) == expected, "round %d: %d, not %d", round, First(b), expected);
    CHECK_DRIVER(cuStreamDestroy(third));
  }
  CHECK_DRIVER(cuGraphExecDestroy(exec));
  CHECK_DRIVER(cuGraphDestroy(graph));
}

static void Timing(GraphProgram& program) {
  CUdeviceptr a = program.Allocate(kCount), b = program.Allocate(kCount);
  CUevent first = NewEvent(), last = NewEvent();
  CUgraph graph = NewGraph();
  CUgraphNode begin = AddRecord(graph, {}, first);
  CUgraphNode kernel = AddScale(graph, {begin}, program.scale, a, b, 2, kCount);
  CUgraphNode end = AddRecord(graph, {kernel}, last);
  CUgraphExec exec = program.Instantiate(graph);
  program.Run(exec);
  float milliseconds = -1;
  CHECK_DRIVER(cuEventElapsedTime(&milliseconds, first, last));
  EXPECT(milliseconds >= 0, "%f ms between the two records", milliseconds);
  // In the executable, the last record goes to another event.
  CUevent other = NewEvent(), third = NewEvent();
  CHECK_DRIVER(cuGraphExecEventRecordNodeSetEvent(exec, end, other));
  REFUSED(CUDA_ERROR_INVALID_HANDLE, cuEventElapsedTime(&milliseconds, first, other));
  program.Run(exec);
  CHECK_DRIVER(cuEventElapsedTime(&milliseconds, first, other));
  // In the graph, a third one: it counts from the next executable or update.
  CHECK_DRIVER(cuGraphEventRecordNodeSetEvent(end, third));
  CUgraphExecUpdateResultInfo info = {};
  CHECK_DRIVER(cuGraphExecUpdate(exec, graph, &info));
  program.Run(exec);
  CHECK_DRIVER(cuEventElapsedTime(&milliseconds, first, third));
  EXPECT(milliseconds >= 0, "%f ms after the update", milliseconds);
  CHECK_DRIVER(cuGraphExecDestroy(exec));
  CHECK_DRIVER(cuGraphDestroy(graph));
}

// A wait node of the executable, then of the graph, gets another event to wait for.
static void Rewaits(GraphProgram& program) {
  CUstream other, frees;
  CHECK_DRIVER(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
  CHECK_DRIVER(cuStreamCreate(&frees, CU_STREAM_NON_BLOCKING));
  CUdeviceptr a = program.Allocate(kCount), b = program.Allocate(kCount);
  CUdeviceptr flag = program.Allocate(1);
  CUevent recorded = NewEvent(), blocked = NewEvent(), told = nullptr;
  CUgraph graph = NewGraph();
  CUgraphNode wait = AddWait(graph, {}, recorded);
  AddScale(graph, {wait}, program.scale, a, b, 2, kCount);
  CUgraphExec exec = program.Instantiate(graph);
  for (bool in_graph : {false, true}) {
    CHECK_DRIVER(cuMemsetD32(flag, 0, 1));
    CHECK_DRIVER(cuMemsetD32(b, 0, kCount));
    CHECK_DRIVER(cuCtxSynchronize());
    if (in_graph) {
      CHECK_DRIVER(cuGraphEventWaitNodeSetEvent(wait, blocked));
      CHECK_DRIVER(cuGraphEventWaitNodeGetEvent(wait, &told));
      EXPECT(told == blocked, "the wait node has another event");
      CHECK_DRIVER(cuGraphExecDestroy(exec));
      exec = program.Instantiate(graph);
    } else {
      CHECK_DRIVER(cuGraphExecEventWaitNodeSetEvent(exec, wait, blocked));
      CHECK_DRIVER(cuGraphEventWaitNodeGetEvent(wait, &told));
      EXPECT(told == recorded, "the graph's own node changed, too");
    }
    CHECK_DRIVER(cuStreamWaitValue32(other, flag, 1, CU_STREAM_WAIT_VALUE_EQ));
    CHECK_DRIVER(cuMemsetD32Async(a, 20 + in_graph, kCount, other));
    CHECK_DRIVER(cuEventRecord(blocked, other));
    CHECK_DRIVER(cuGraphLaunch(exec, program.stream));
    REFUSED(CUDA_ERROR_NOT_READY, cuStreamQuery(program.stream));
    CHECK_DRIVER(cuStreamWriteValue32(frees, flag, 1, 0));
    CHECK_DRIVER(cuStreamSynchronize(program.stream));
    const int expected = (20 + in_graph) * 2 + 3;
    EXPECT(First(b) == expected, "%d, not %d: the kernel did not wait", First(b), expected);
  }
  CHECK_DRIVER(cuGraphExecDestroy(exec));
  CHECK_DRIVER(cuGraphDestroy(graph));
}

// Records and waits that are captured as nodes.
static void Captured(GraphProgram& program) {
  CUdeviceptr a = program.Allocate(kCount), b = program.Allocate(kCount);
  CUevent event = NewEvent(), before = NewEvent();
  CHECK_DRIVER(cuStreamBeginCapture(program.stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  CHECK_DRIVER(cuStreamWaitEvent(program.stream, before, CU_EVENT_WAIT_EXTERNAL));
  ScaleNode scale{a, b, 2, kCount};
  CHECK_DRIVER(cuLaunchKernel(program.scale, 4, 1, 1, 64, 1, 1, 0, program.stream, scale.arguments,
                              nullptr));
  CHECK_DRIVER(cuEventRecordWithFlags(event, program.stream, CU_EVENT_RECORD_EXTERNAL));
  CUgraph graph = nullptr;
  CHECK_DRIVER(cuStreamEndCapture(program.stream, &graph));
  CUgraphExec exec = program.Instantiate(graph);
  CUgraph clone = nullptr;
  CHECK_DRIVER(cuGraphClone(&clone, graph));
  CUgraphExec of_clone = program.Instantiate(clone);
  for (CUgraphExec each : {exec, of_clone}) {
    CHECK_DRIVER(cuMemsetD32(b, 0, kCount));
    CHECK_DRIVER(cuCtxSynchronize());
    CHECK_DRIVER(cuGraphLaunch(each, program.stream));
    CHECK_DRIVER(cuEventSynchronize(event));
    EXPECT(First(b) == 3, "the event came before the kernel: %d", First(b));
  }
  for (CUgraphExec each : {exec, of_clone}) CHECK_DRIVER(cuGraphExecDestroy(each));
  CHECK_DRIVER(cuGraphDestroy(graph));
  CHECK_DRIVER(cuGraphDestroy(clone));
}

static void Refusals(GraphProgram& program) {
  CUgraph graph = NewGraph();
  CUevent event = NewEvent(), told = nullptr;
  CUgraphNode node = nullptr, record = AddRecord(graph, {}, event);
  CUgraphNode wait = AddWait(graph, {record}, event);
  constexpr CUresult kInvalid = CUDA_ERROR_INVALID_VALUE, kHandle = CUDA_ERROR_INVALID_HANDLE;
  REFUSED(kInvalid, cuGraphAddEventRecordNode(nullptr, graph, nullptr, 0, event));
  REFUSED(kInvalid, cuGraphAddEventRecordNode(&node, nullptr, nullptr, 0, event));
  REFUSED(kInvalid, cuGraphAddEventWaitNode(&node, graph, nullptr, 1, event));
  REFUSED(kInvalid, cuGraphAddEventRecordNode(&node, graph, nullptr, 0, nullptr));
  REFUSED(kInvalid, cuGraphAddEventWaitNode(&node, graph, nullptr, 0, nullptr));
  REFUSED(kInvalid, cuGraphEventRecordNodeGetEvent(wait, &told));
  REFUSED(kInvalid, cuGraphEventWaitNodeGetEvent(record, &told));
  REFUSED(kInvalid, cuGraphEventRecordNodeGetEvent(record, nullptr));
  REFUSED(kInvalid, cuGraphEventWaitNodeSetEvent(record, event));
  REFUSED(kInvalid, cuGraphEventRecordNodeSetEvent(wait, event));
  CUgraphExec exec = program.Instantiate(graph);
  REFUSED(kInvalid, cuGraphExecEventRecordNodeSetEvent(exec, wait, event));
  REFUSED(kInvalid, cuGraphExecEventWaitNodeSetEvent(nullptr, wait, event));
  REFUSED(kInvalid, cuGraphExecEventWaitNodeSetEvent(exec, wait, nullptr));
  program.Run(exec);
  CHECK_DRIVER(cuEventQuery(event));
  CHECK_DRIVER(cuGraphExecDestroy(exec));
  CHECK_DRIVER(cuGraphDestroy(graph));
}

int main() {
  GraphProgram program;
  BetweenStreams(program);
  Timing(program);
  Rewaits(program);
  Captured(program);
  Refusals(program);
  std::printf("PASS driver_graph_events\n");
  return 0;
}
