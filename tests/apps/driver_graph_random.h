// The memory, the graphs and the model of driver_graph_random. What a graph does is a chain of
// operations on buffers; the model does the same to its own ones at each launch.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <memory>
#include <optional>

#include "driver_graph.h"

namespace {

constexpr int kInts = 96;
constexpr int kDeviceBuffers = 4, kPinnedBuffers = 2, kBuffers = 8;  // the last ones are pageable
constexpr size_t kBufferBytes = kInts * sizeof(int);

bool IsHost(int buffer) { return buffer >= kDeviceBuffers; }
bool IsDevice(int buffer) { return !IsHost(buffer); }
bool IsAny(int) { return true; }
bool IsPageable(int buffer) { return buffer >= kDeviceBuffers + kPinnedBuffers; }

enum class Kind { kKernel, kFill, kCopy, kHost, kChild };

struct Op {
  Kind kind = Kind::kFill;
  int from = -1, to = -1;
  int factor = 0;  // of a kernel and a host function, the value of a fill
  int first_from = 0, first_to = 0, ints = kInts;  // of a copy
  std::vector<Op> child;                           // what the graph of a child does
};

struct Graph;
struct Node {
  Op op;
  CUgraphNode handle = nullptr;
  const Graph* origin = nullptr;  // of a child: the graph of which it is a copy
  bool on = true;                 // in an executable
};

struct Graph {
  CUgraph handle = nullptr;
  std::vector<Node> nodes;
  bool has_child = false;

  std::vector<Op> ops() const {
    std::vector<Op> all;
    for (const Node& node : nodes) all.push_back(node.op);
    return all;
  }
};

struct Exec {
  CUgraphExec handle = nullptr;
  const Graph* graph = nullptr;  // null: it was destroyed, and the nodes' handles with it
  std::vector<Node> nodes;
};

// What a host function does; the program keeps it, as it may run at any time.
struct HostWork {
  int* memory;
  int factor;
};
void CUDA_CB RunHostWork(void* data) {
  const auto* work = static_cast<HostWork*>(data);
  for (int i = 0; i < kInts; ++i) {
    work->memory[i] = static_cast<int>(
        static_cast<unsigned>(work->memory[i]) * static_cast<unsigned>(work->factor) + 1);
  }
}

class Machine {
 public:
  explicit Machine(GraphProgram& program) : program_(program), model_(kBuffers) {
    for (int i = 0; i < kBuffers; ++i) {
      model_[i].assign(kInts, 0);
      if (IsDevice(i)) {
        device_[i] = program.Allocate(kInts);
        continue;
      }
      void* memory = nullptr;
      if (!IsPageable(i)) {
        CHECK_DRIVER(cuMemAllocHost(&memory, kBufferBytes));
      } else {
        memory = std::malloc(kBufferBytes);
      }
      host_[i] = static_cast<int*>(memory);
      std::memset(memory, 0, kBufferBytes);
    }
    for (CUstream& stream : streams_) {
      CHECK_DRIVER(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    }
    CHECK_DRIVER(cuEventCreate(&turn_, CU_EVENT_DISABLE_TIMING));
  }
  ~Machine() {
    Settle();
    CHECK_DRIVER(cuEventDestroy(turn_));
    for (CUstream stream : streams_) CHECK_DRIVER(cuStreamDestroy(stream));
    for (int i = 0; i < kBuffers; ++i) {
      if (IsDevice(i)) {
        CHECK_DRIVER(cuMemFree(device_[i]));
      } else if (!IsPageable(i)) {
        CHECK_DRIVER(cuMemFreeHost(host_[i]));
      } else {
        std::free(host_[i]);
      }
    }
  }
  Machine(const Machine&) = delete;

  void Build(const std::vector<Op>& ops, Graph* graph) {
    graph->handle = NewGraph();
    for (const Op& op : ops) {
      Node node{op};
      const std::vector<CUgraphNode> after = Last(*graph);
      if (op.kind == Kind::kKernel) {
        ScaleNode scale = Scale(op);
        CUDA_KERNEL_NODE_PARAMS params = scale.Params(program_.scale);
        CHECK_DRIVER(
            cuGraphAddKernelNode(&node.handle, graph->handle, after.data(), after.size(), &params));
      } else if (op.kind == Kind::kFill) {
        CUDA_MEMSET_NODE_PARAMS fill = Fill(op);
        CHECK_DRIVER(cuGraphAddMemsetNode(&node.handle, graph->handle, after.data(), after.size(),
                                          &fill, program_.context));
      } else if (op.kind == Kind::kCopy) {
        node.handle = AddCopy(graph->handle, after, Copy(op), program_.context);
      } else {
        node.handle = AddHost(graph->handle, after, RunHostWork, Work(op));
      }
      graph->nodes.push_back(node);
    }
  }
  void AddChild(const Graph& child, Graph* graph) {
    Node node;
    node.op.kind = Kind::kChild;
    node.op.child = child.ops();
    node.origin = &child;
    const std::vector<CUgraphNode> after = Last(*graph);
    CHECK_DRIVER(cuGraphAddChildGraphNode(&node.handle, graph->handle, after.data(), after.size(),
                                          child.handle));
    graph->nodes.push_back(node);
    graph->has_child = true;
  }
  void Capture(const std::vector<Op>& ops, Graph* graph) {
    CUstream stream = streams_[0];
    CHECK_DRIVER(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    for (const Op& op : ops) {
      Issue(op, stream);
      CUstreamCaptureStatus status{};
      const CUgraphNode* last = nullptr;
      size_t count = 0;
      CHECK_DRIVER(
          cuStreamGetCaptureInfo(stream, &status, nullptr, nullptr, &last, nullptr, &count));
      EXPECT(count == 1, "the capture has %zu ends", count);
      graph->nodes.push_back({op, last[0]});
    }
    CHECK_DRIVER(cuStreamEndCapture(stream, &graph->handle));
  }
  void Clone(const Graph& original, Graph* graph) {
    CHECK_DRIVER(cuGraphClone(&graph->handle, original.handle));
    graph->has_child = original.has_child;
    graph->nodes = original.nodes;
    for (Node& node : graph->nodes) {
      CHECK_DRIVER(cuGraphNodeFindInClone(&node.handle, node.handle, graph->handle));
      if (node.op.kind == Kind::kCopy) ExpectCopy(node);
    }
  }
  // Null if it is refused.
  std::optional<Exec> Instantiate(const Graph* graph) {
    Exec exec{nullptr, graph, graph->nodes};
    if (!IsDone(cuGraphInstantiate(&exec.handle, graph->handle, 0))) return {};
    return exec;
  }

  void SetInGraph(const Node& node) {
    const Op& op = node.op;
    if (op.kind == Kind::kKernel) {
      ScaleNode scale = Scale(op);
      CUDA_KERNEL_NODE_PARAMS params = scale.Params(program_.scale);
      CHECK_DRIVER(cuGraphKernelNodeSetParams(node.handle, &params));
    } else if (op.kind == Kind::kFill) {
      CUDA_MEMSET_NODE_PARAMS fill = Fill(op);
      CHECK_DRIVER(cuGraphMemsetNodeSetParams(node.handle, &fill));
    } else if (op.kind == Kind::kCopy) {
      CUDA_MEMCPY3D copy = Copy(op);
      CHECK_DRIVER(cuGraphMemcpyNodeSetParams(node.handle, &copy));
    } else {
      CUDA_HOST_NODE_PARAMS host{RunHostWork, Work(op)};
      CHECK_DRIVER(cuGraphHostNodeSetParams(node.handle, &host));
    }
  }
  // False if it is refused, as the ones below.
  bool SetInExec(const Exec& exec, const Node& node) {
    const Op& op = node.op;
    if (op.kind == Kind::kKernel) {
      ScaleNode scale = Scale(op);
      CUDA_KERNEL_NODE_PARAMS params = scale.Params(program_.scale);
      return IsDone(cuGraphExecKernelNodeSetParams(exec.handle, node.handle, &params));
    } else if (op.kind == Kind::kFill) {
      CUDA_MEMSET_NODE_PARAMS fill = Fill(op);
      return IsDone(
          cuGraphExecMemsetNodeSetParams(exec.handle, node.handle, &fill, program_.context));
    } else if (op.kind == Kind::kCopy) {
      CUDA_MEMCPY3D copy = Copy(op);
      return IsDone(
          cuGraphExecMemcpyNodeSetParams(exec.handle, node.handle, &copy, program_.context));
    } else {
      CUDA_HOST_NODE_PARAMS host{RunHostWork, Work(op)};
      return IsDone(cuGraphExecHostNodeSetParams(exec.handle, node.handle, &host));
    }
  }
  bool SetChild(const Exec& exec, const Node& node) {
    return IsDone(
        cuGraphExecChildGraphNodeSetParams(exec.handle, node.handle, node.origin->handle));
  }
  void Enable(const Exec& exec, const Node& node) {
    CHECK_DRIVER(cuGraphNodeSetEnabled(exec.handle, node.handle, node.on ? 1 : 0));
  }
  void Update(Exec* exec) {
    CUgraphExecUpdateResultInfo info{};
    if (!IsDone(cuGraphExecUpdate(exec->handle, exec->graph->handle, &info))) return;
    for (size_t i = 0; i < exec->nodes.size(); ++i) exec->nodes[i].op = exec->graph->nodes[i].op;
  }

  void Launch(const Exec& exec, int stream) {
    Begin(stream);
    CHECK_DRIVER(cuGraphLaunch(exec.handle, streams_[stream]));
    for (const Node& node : exec.nodes) {
      if (node.on) Apply(node.op);
    }
  }
  // The driver may take a pageable source's bytes at once, before what it has been given finishes.
  void Do(const Op& op, int stream) {
    if (op.kind == Kind::kCopy && IsPageable(op.from)) Settle();
    Begin(stream);
    Issue(op, streams_[stream]);
    Apply(op);
  }
  void Settle() {
    for (CUstream stream : streams_) CHECK_DRIVER(cuStreamSynchronize(stream));
  }
  // Of what was settled.
  void Compare(unsigned seed, int step) {
    for (int i = 0; i < kBuffers; ++i) {
      std::vector<int> found(kInts);
      if (IsDevice(i)) {
        CHECK_DRIVER(cuMemcpyDtoH(found.data(), device_[i], kBufferBytes));
      } else {
        found.assign(host_[i], host_[i] + kInts);
      }
      EXPECT(found == model_[i], "seed %u, step %d, buffer %d: %d instead of %d", seed, step, i,
             found[0], model_[i][0]);
    }
  }
  void Write(int buffer, int value) {
    for (int i = 0; i < kInts; ++i) host_[buffer][i] = model_[buffer][i] = value + i;
  }

 private:
  // The node says where it copies.
  void ExpectCopy(const Node& node) {
    CUDA_MEMCPY3D told{};
    CHECK_DRIVER(cuGraphMemcpyNodeGetParams(node.handle, &told));
    const bool from = IsHost(node.op.from) || told.srcDevice == DeviceFrom(node.op);
    const bool to = IsHost(node.op.to) || told.dstDevice == DeviceTo(node.op);
    EXPECT(from && to, "the clone of a copy from %d to %d goes elsewhere", node.op.from,
           node.op.to);
  }
  // What may be refused, and leaves everything as it was: copies within a graph that read what
  // others wrote into the program's memory (docs/graphs.md).
  static bool IsDone(CUresult result) {
    if (result != CUDA_ERROR_NOT_SUPPORTED) CHECK_DRIVER(result);
    return result == CUDA_SUCCESS;
  }
  static std::vector<CUgraphNode> Last(const Graph& graph) {
    if (graph.nodes.empty()) return {};
    return {graph.nodes.back().handle};
  }
  ScaleNode Scale(const Op& op) const {
    return {device_[op.from], device_[op.to], op.factor, kInts};
  }
  CUDA_MEMSET_NODE_PARAMS Fill(const Op& op) const {
    CUDA_MEMSET_NODE_PARAMS fill{};
    fill.dst = device_[op.to];
    fill.value = static_cast<unsigned>(op.factor);
    fill.elementSize = sizeof(int);
    fill.width = kInts;
    fill.height = 1;
    return fill;
  }
  CUDA_MEMCPY3D Copy(const Op& op) const {
    CUDA_MEMCPY3D copy{};
    copy.WidthInBytes = BytesOf(op);
    copy.Height = copy.Depth = 1;
    IsHost(op.from) ? SetSource(&copy, HostFrom(op)) : SetSource(&copy, DeviceFrom(op));
    IsHost(op.to) ? SetDestination(&copy, HostTo(op)) : SetDestination(&copy, DeviceTo(op));
    return copy;
  }
  HostWork* Work(const Op& op) {
    works_.push_back({host_[op.to], op.factor});
    return &works_.back();
  }
  // The two sides of a copy.
  static size_t BytesOf(const Op& op) { return static_cast<size_t>(op.ints) * sizeof(int); }
  int* HostFrom(const Op& op) const { return host_[op.from] + op.first_from; }
  int* HostTo(const Op& op) const { return host_[op.to] + op.first_to; }
  CUdeviceptr DeviceFrom(const Op& op) const {
    return device_[op.from] + static_cast<CUdeviceptr>(op.first_from) * sizeof(int);
  }
  CUdeviceptr DeviceTo(const Op& op) const {
    return device_[op.to] + static_cast<CUdeviceptr>(op.first_to) * sizeof(int);
  }

  // Work goes in the program's order, in whichever stream.
  void Begin(int stream) {
    if (stream == last_) return;
    CHECK_DRIVER(cuEventRecord(turn_, streams_[last_]));
    CHECK_DRIVER(cuStreamWaitEvent(streams_[stream], turn_, 0));
    last_ = stream;
  }
  void Issue(const Op& op, CUstream stream) {
    if (op.kind == Kind::kKernel) {
      ScaleNode scale = Scale(op);
      CHECK_DRIVER(cuLaunchKernel(program_.scale, (kInts + 63) / 64, 1, 1, 64, 1, 1, 0, stream,
                                  scale.arguments, nullptr));
    } else if (op.kind == Kind::kFill) {
      CHECK_DRIVER(
          cuMemsetD32Async(device_[op.to], static_cast<unsigned>(op.factor), kInts, stream));
    } else if (op.kind == Kind::kHost) {
      CHECK_DRIVER(cuLaunchHostFunc(stream, RunHostWork, Work(op)));
    } else if (IsHost(op.from) && IsHost(op.to)) {
      CHECK_DRIVER(cuMemcpyAsync(reinterpret_cast<CUdeviceptr>(HostTo(op)),
                                 reinterpret_cast<CUdeviceptr>(HostFrom(op)), BytesOf(op), stream));
    } else if (IsHost(op.from)) {
      CHECK_DRIVER(cuMemcpyHtoDAsync(DeviceTo(op), HostFrom(op), BytesOf(op), stream));
    } else if (IsHost(op.to)) {
      CHECK_DRIVER(cuMemcpyDtoHAsync(HostTo(op), DeviceFrom(op), BytesOf(op), stream));
    } else {
      CHECK_DRIVER(cuMemcpyDtoDAsync(DeviceTo(op), DeviceFrom(op), BytesOf(op), stream));
    }
  }

  void Apply(const Op& op) {
    for (const Op& inner : op.child) Apply(inner);
    if (op.kind == Kind::kChild) return;
    std::vector<int>& to = model_[op.to];
    if (op.kind == Kind::kFill) to.assign(kInts, op.factor);
    if (op.kind == Kind::kCopy) {
      std::copy_n(model_[op.from].begin() + op.first_from, op.ints, to.begin() + op.first_to);
    }
    if (op.kind != Kind::kKernel && op.kind != Kind::kHost) return;
    const std::vector<int> from = model_[op.kind == Kind::kKernel ? op.from : op.to];
    const unsigned added = op.kind == Kind::kKernel ? 3 : 1;
    for (int i = 0; i < kInts; ++i) {
      to[i] = static_cast<int>(static_cast<unsigned>(from[i]) * static_cast<unsigned>(op.factor) +
                               added);
    }
  }

  GraphProgram& program_;
  CUstream streams_[2] = {};
  CUevent turn_ = nullptr;
  int last_ = 0;  // the stream of the newest work
  CUdeviceptr device_[kBuffers] = {};
  int* host_[kBuffers] = {};
  std::vector<std::vector<int>> model_;
  std::deque<HostWork> works_;
};

}  // namespace
