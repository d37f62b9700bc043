// Captures into a graph that is there, captures that are looked at and changed from outside,
// objects that graphs keep alive, and pictures of graphs.
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <string>
#include <utility>

#include "driver_graph.h"

constexpr int kCount = 200;
constexpr CUresult kInvalid = CUDA_ERROR_INVALID_VALUE;

static int First(CUdeviceptr memory) {
  int value = 0;
  CHECK_DRIVER(cuMemcpyDtoH(&value, memory, sizeof value));
  return value;
}

static void Launch(GraphProgram& program, CUdeviceptr in, CUdeviceptr out, int factor) {
  ScaleNode scale{in, out, factor, kCount};
  CHECK_DRIVER(cuLaunchKernel(program.scale, 4, 1, 1, 64, 1, 1, 0, program.stream, scale.arguments,
                              nullptr));
}

static size_t NodesOf(CUgraph graph) {
  size_t count = 0;
  CHECK_DRIVER(cuGraphGetNodes(graph, nullptr, &count));
  return count;
}

static void IntoAGraph(GraphProgram& program) {
  CUdeviceptr a = program.Allocate(kCount), b = program.Allocate(kCount);
  int result = 0;
  CUgraph graph = NewGraph(), ended = nullptr, other = NewGraph();
  CUgraphNode first = AddScale(graph, {}, program.scale, a, b, 2, kCount);  // b = 3
  constexpr auto kRelaxed = CU_STREAM_CAPTURE_MODE_RELAXED;
  CUstream stream = program.stream;
  REFUSED(kInvalid, cuStreamBeginCaptureToGraph(stream, nullptr, &first, nullptr, 1, kRelaxed));
  REFUSED(kInvalid, cuStreamBeginCaptureToGraph(stream, graph, nullptr, nullptr, 1, kRelaxed));
  REFUSED(kInvalid, cuStreamBeginCaptureToGraph(stream, other, &first, nullptr, 1, kRelaxed));
  CHECK_DRIVER(cuStreamBeginCaptureToGraph(stream, graph, &first, nullptr, 1, kRelaxed));
  Launch(program, b, b, 10);  // 33
  CHECK_DRIVER(cuMemcpyDtoHAsync(&result, b, sizeof result, stream));
  CHECK_DRIVER(cuStreamEndCapture(stream, &ended));
  EXPECT(ended == graph, "the capture ended with another graph");
  EXPECT(NodesOf(graph) == 3, "the graph has %zu nodes", NodesOf(graph));
  CUgraphExec exec = program.Instantiate(graph);
  program.Run(exec);
  EXPECT(result == 33, "the result is %d", result);
  CHECK_DRIVER(cuGraphExecDestroy(exec));
  CHECK_DRIVER(cuGraphDestroy(graph));
  CHECK_DRIVER(cuGraphDestroy(other));
}

// Runs a graph of three launches, whose last result is in `b`, and destroys it.
static void RunThree(GraphProgram& program, CUgraph graph, CUdeviceptr b) {
  EXPECT(NodesOf(graph) == 3, "the graph has %zu nodes", NodesOf(graph));
  CUgraphExec exec = program.Instantiate(graph);
  program.Run(exec);
  EXPECT(First(b) == 3303, "the result is %d", First(b));
  CHECK_DRIVER(cuGraphExecDestroy(exec));
  CHECK_DRIVER(cuGraphDestroy(graph));
}

// A stream that joined a capture, and events recorded in it, are destroyed before it ends. Who
// captures into a graph of their own need not ask which graph it was.
static void WithStreamsThatGo(GraphProgram& program) {
  CUdeviceptr a = program.Allocate(kCount), b = program.Allocate(kCount);
  CUstream joining;
  CUevent fork, join;
  CUgraph graph = NewGraph();
  CHECK_DRIVER(cuStreamCreate(&joining, CU_STREAM_NON_BLOCKING));
  CHECK_DRIVER(cuEventCreate(&fork, CU_EVENT_DISABLE_TIMING));
  CHECK_DRIVER(cuEventCreate(&join, CU_EVENT_DISABLE_TIMING));
  CHECK_DRIVER(cuStreamBeginCaptureToGraph(program.stream, graph, nullptr, nullptr, 0,
                                           CU_STREAM_CAPTURE_MODE_GLOBAL));
  Launch(program, a, b, 2);  // 3
  CHECK_DRIVER(cuEventRecord(fork, program.stream));
  CHECK_DRIVER(cuStreamWaitEvent(joining, fork, 0));
  std::swap(program.stream, joining);
  Launch(program, b, b, 10);  // 33
  std::swap(program.stream, joining);
  CHECK_DRIVER(cuEventRecord(join, joining));
  CHECK_DRIVER(cuStreamWaitEvent(program.stream, join, 0));
  CHECK_DRIVER(cuStreamDestroy(joining));
  CHECK_DRIVER(cuEventDestroy(fork));
  CHECK_DRIVER(cuEventDestroy(join));
  Launch(program, b, b, 100);  // 3303
  CHECK_DRIVER(cuStreamEndCapture(program.stream, nullptr));
  RunThree(program, graph, b);
}

// A node that the program adds itself to what is being captured.
static void FromOutside(GraphProgram& program) {
  CUdeviceptr a = program.Allocate(kCount), b = program.Allocate(kCount);
  CUgraphNode none = nullptr;
  REFUSED(CUDA_ERROR_ILLEGAL_STATE,
          cuStreamUpdateCaptureDependencies(program.stream, &none, nullptr, 0,
                                            CU_STREAM_SET_CAPTURE_DEPENDENCIES));
  CHECK_DRIVER(cuStreamBeginCapture(program.stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  Launch(program, a, b, 2);  // 3
  CUstreamCaptureStatus status;
  cuuint64_t id = 0;
  CUgraph graph = nullptr, ended = nullptr;
  const CUgraphNode* nodes = nullptr;
  const CUgraphEdgeData* edges = nullptr;
  size_t count = 0;
  CHECK_DRIVER(
      cuStreamGetCaptureInfo(program.stream, &status, &id, &graph, &nodes, &edges, &count));
  EXPECT(status == CU_STREAM_CAPTURE_STATUS_ACTIVE && graph != nullptr && count == 1,
         "status %d, graph %p, %zu nodes", status, static_cast<void*>(graph), count);
  CUgraphNode added = AddScale(graph, {nodes[0]}, program.scale, b, b, 10, kCount);  // 33
  REFUSED(kInvalid, cuStreamUpdateCaptureDependencies(program.stream, &added, nullptr, 1, 99));
  CHECK_DRIVER(cuStreamUpdateCaptureDependencies(program.stream, &added, nullptr, 1,
                                                 CU_STREAM_SET_CAPTURE_DEPENDENCIES));
  Launch(program, b, b, 100);  // 3303
  CHECK_DRIVER(cuStreamEndCapture(program.stream, &ended));
  EXPECT(ended == graph, "the graph was %p during its capture and is %p", static_cast<void*>(graph),
         static_cast<void*>(ended));
  RunThree(program, graph, b);
}

struct Object {
  std::mutex mutex;
  std::condition_variable changed;
  int destroyed = 0;

  static void CUDA_CB Destroy(void* data) {
    Object* object = static_cast<Object*>(data);
    std::lock_guard<std::mutex> lock(object->mutex);
    ++object->destroyed;
    object->changed.notify_all();
  }
  void WaitUntilDestroyed(const char* when) {
    std::unique_lock<std::mutex> lock(mutex);
    bool in_time = changed.wait_for(lock, std::chrono::seconds(20), [&] { return destroyed > 0; });
    EXPECT(in_time && destroyed == 1, "%s it was destroyed %d times", when, destroyed);
  }
  void ExpectAlive(const char* when) {
    std::lock_guard<std::mutex> lock(mutex);
    EXPECT(destroyed == 0, "%s it was destroyed already", when);
  }
};

static CUuserObject NewUserObject(Object* object, unsigned references) {
  CUuserObject handle = nullptr;
  CHECK_DRIVER(cuUserObjectCreate(&handle, object, Object::Destroy, references,
                                  CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
  return handle;
}

static void UserObjects(GraphProgram& program) {
  Object counted;
  CUuserObject handle = NewUserObject(&counted, 1);
  CHECK_DRIVER(cuUserObjectRetain(handle, 2));
  CHECK_DRIVER(cuUserObjectRelease(handle, 2));
  counted.ExpectAlive("with a reference left");
  CHECK_DRIVER(cuUserObjectRelease(handle, 1));
  counted.WaitUntilDestroyed("after the last release");

  // Kept by a graph, then by its clone and by an executable.
  Object kept;
  handle = NewUserObject(&kept, 1);
  CUgraph graph = NewGraph(), clone = nullptr;
  CHECK_DRIVER(cuGraphRetainUserObject(graph, handle, 1, CU_GRAPH_USER_OBJECT_MOVE));
  CUgraphNode node = nullptr;
  CHECK_DRIVER(cuGraphAddEmptyNode(&node, graph, nullptr, 0));
  CHECK_DRIVER(cuGraphClone(&clone, graph));
  CHECK_DRIVER(cuGraphDestroy(graph));
  CUgraphExec exec = program.Instantiate(clone);
  CHECK_DRIVER(cuGraphDestroy(clone));
  program.Run(exec);
  kept.ExpectAlive("while an executable refers to it");
  CHECK_DRIVER(cuGraphExecDestroy(exec));
  kept.WaitUntilDestroyed("after the executable");

  Object released;
  handle = NewUserObject(&released, 1);
  graph = NewGraph();
  CHECK_DRIVER(cuGraphRetainUserObject(graph, handle, 2, 0));
  CHECK_DRIVER(cuUserObjectRelease(handle, 1));
  CHECK_DRIVER(cuGraphReleaseUserObject(graph, handle, 1));
  released.ExpectAlive("with one of the graph's references left");
  REFUSED(kInvalid, cuGraphReleaseUserObject(graph, handle, 0));
  REFUSED(kInvalid, cuGraphRetainUserObject(graph, handle, 1, 77));
  REFUSED(kInvalid, cuGraphRetainUserObject(nullptr, handle, 1, 0));
  REFUSED(kInvalid, cuGraphRetainUserObject(graph, nullptr, 1, 0));
  CHECK_DRIVER(cuGraphReleaseUserObject(graph, handle, 1));
  released.WaitUntilDestroyed("after the graph's last release");
  CHECK_DRIVER(cuGraphDestroy(graph));

  CUuserObject wrong = nullptr;
  constexpr unsigned kFlags = CU_USER_OBJECT_NO_DESTRUCTOR_SYNC;
  REFUSED(kInvalid, cuUserObjectCreate(nullptr, &kept, Object::Destroy, 1, kFlags));
  REFUSED(kInvalid, cuUserObjectCreate(&wrong, &kept, nullptr, 1, kFlags));
  REFUSED(kInvalid, cuUserObjectCreate(&wrong, &kept, Object::Destroy, 0, kFlags));
  REFUSED(kInvalid, cuUserObjectCreate(&wrong, &kept, Object::Destroy, 1, 0));
  REFUSED(kInvalid, cuUserObjectRetain(nullptr, 1));
  REFUSED(kInvalid, cuUserObjectRelease(nullptr, 1));
}

int main() {
  GraphProgram program;
  IntoAGraph(program);
  WithStreamsThatGo(program);
  FromOutside(program);
  UserObjects(program);
  std::printf("PASS driver_graph_capture\n");
  return 0;
}
