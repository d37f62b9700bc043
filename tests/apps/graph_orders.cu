// Random graphs of nodes of all kinds, built and captured. At every launch each node finds done all
// that its paths come from, and nothing done that they lead to; and launches of one executable in
// different streams, with nothing to order those, come one after the other.
#include <cuda.h>

#include <algorithm>
#include <cstdlib>
#include <random>
#include <vector>

#include "check.h"

constexpr int kNodes = 20;
constexpr int kLaunches = 5;

// What the nodes leave. A node's token is not 0 from when it has run until the next launch.
struct Device {
  int tokens[kNodes + 1];  // of nodes of the device; behind them the 1 that copies take along
  int copied[kNodes + 1][kNodes];    // column j: the tokens as copy j found them, and then its own
  int uploaded[kNodes + 1][kNodes];  // column j: the host's tokens as upload j found them
  int scratch[kNodes];
  int wrong;
};
struct Host {
  int ran[kNodes + 1];          // of host functions: the launch in which they ran last; which is on
  int got[kNodes][kNodes + 1];  // row j: the tokens as download j found them, and the 1
  int wrong;
};
static Host host;

// Sets of nodes, a bit each: those that come before and after one.
struct Order {
  unsigned before = 0, after = 0;
};
enum Kind { kKernel, kFill, kWrite, kCopy, kDownload, kUpload, kFunction, kNothing };
struct Node {
  Kind kind = kNothing;
  Order order;
  std::vector<int> from;
  cudaGraphNode_t node = nullptr;
};
struct Kinds {
  Kind of[kNodes];
};

__device__ __host__ bool IsAmong(unsigned set, int node) { return (set >> node & 1) != 0; }

__device__ int TokenOf(volatile Device* device, Kind kind, int node) {
  if (kind == kCopy) return device->copied[kNodes][node];
  if (kind == kUpload) return device->uploaded[kNodes][node];
  return device->tokens[node];
}

__device__ bool HasToken(Kind kind) { return kind <= kCopy || kind == kUpload; }

__global__ void Clear(Device* device) {
  for (int i = 0; i <= kNodes; ++i) {
    for (int j = 0; j < kNodes; ++j) device->copied[i][j] = device->uploaded[i][j] = 0;
    device->tokens[i] = i == kNodes;
  }
}

__global__ void Look(volatile Device* device, Kinds kinds, Order order, int self) {
  for (int i = 0; i < kNodes; ++i) {
    if (!HasToken(kinds.of[i])) continue;
    const bool done = TokenOf(device, kinds.of[i], i) != 0;
    if (IsAmong(order.before, i) && !done) ++device->wrong;
    if (IsAmong(order.after, i) && done) ++device->wrong;
  }
  __threadfence();
  device->tokens[self] = 1;
}

struct Orders {
  Order of[kNodes];
};

// What copies and uploads found.
__global__ void Judge(Device* device, Kinds kinds, Orders orders) {
  for (int j = 0; j < kNodes; ++j) {
    for (int i = 0; i < kNodes; ++i) {
      const Order order = orders.of[j];
      const bool token = kinds.of[i] <= kWrite, function = kinds.of[i] == kFunction;
      if (kinds.of[j] == kCopy && token) {
        if (IsAmong(order.before, i) && device->copied[i][j] == 0) ++device->wrong;
        if (IsAmong(order.after, i) && device->copied[i][j] != 0) ++device->wrong;
      } else if (kinds.of[j] == kUpload && function) {
        const bool ran = device->uploaded[i][j] == device->uploaded[kNodes][j];
        if (IsAmong(order.before, i) && !ran) ++device->wrong;
        if (IsAmong(order.after, i) && ran) ++device->wrong;
      }
    }
  }
}

struct Graph;
struct Call {
  Graph* graph;
  int self;
};

// Whether the order of two nodes shows in what they leave.
static bool Shows(Kind from, Kind to) {
  switch (from) {
    case kKernel:
      return to != kFunction;
    case kFill:
    case kWrite:
      return to == kKernel || to == kCopy || to == kDownload;
    case kCopy:
      return to <= kWrite;
    case kDownload:
      return to <= kWrite || to == kFunction;
    case kUpload:
      return to == kKernel || to == kFunction;
    case kFunction:
      return to >= kDownload;
    default:
      return true;
  }
}

struct Graph {
  std::mt19937 random;
  bool captured, plain;  // plain: a copy of it can be made
  Device* device = nullptr;
  CUcontext context = nullptr;
  cudaGraph_t graph = nullptr;
  cudaStream_t stream = nullptr;
  cudaEvent_t event = nullptr;
  Node nodes[kNodes];
  Call calls[kNodes];
  Kinds kinds;

  Graph(unsigned seed, bool captured, bool plain)
      : random(seed), captured(captured), plain(plain) {}
  int Below(int count) { return static_cast<int>(random() % count); }

  void Plan();
  Kind KindOf(const std::vector<int>& from);
  void Build();
  std::vector<cudaGraphNode_t> After(int j, cudaGraphNode_t begin);
  cudaGraphNode_t Add(int j, std::vector<cudaGraphNode_t> after);
  cudaGraphNode_t AddKernel(cudaGraph_t to, int j, std::vector<cudaGraphNode_t> after);
  cudaGraphNode_t AddNothing(std::vector<cudaGraphNode_t> after);
  cudaGraphNode_t AddCopy(int j, std::vector<cudaGraphNode_t> after);
  cudaGraphNode_t AddFunction(cudaHostFn_t run, void* data, std::vector<cudaGraphNode_t> after);
  template <class Work>
  cudaGraphNode_t Capture(std::vector<cudaGraphNode_t> after, Work work);
};

static void Begin(void*) {
  ++host.ran[kNodes];
  for (auto& row : host.got) std::fill(row, row + kNodes + 1, 0);
}

static void Run(void* data) {
  const auto& [graph, self] = *static_cast<Call*>(data);
  const Order order = graph->nodes[self].order;
  for (int i = 0; i < kNodes; ++i) {
    bool done = false;
    if (graph->kinds.of[i] == kFunction) {
      done = host.ran[i] == host.ran[kNodes];
    } else if (graph->kinds.of[i] == kDownload) {
      done = host.got[i][kNodes] != 0;
    } else {
      continue;
    }
    if (IsAmong(order.before, i) && !done) ++host.wrong;
    if (IsAmong(order.after, i) && done) ++host.wrong;
  }
  host.ran[self] = host.ran[kNodes];
}

// What downloads found.
static void End(void* data) {
  const Graph& graph = *static_cast<Graph*>(data);
  for (int j = 0; j < kNodes; ++j) {
    for (int i = 0; i < kNodes; ++i) {
      if (graph.kinds.of[j] != kDownload || graph.kinds.of[i] > kWrite) continue;
      const Order order = graph.nodes[j].order;
      if (IsAmong(order.before, i) && host.got[j][i] == 0) ++host.wrong;
      if (IsAmong(order.after, i) && host.got[j][i] != 0) ++host.wrong;
    }
  }
}

// A kind whose order behind each of these shows. Nodes that leave nothing pass on what is before.
Kind Graph::KindOf(const std::vector<int>& from) {
  std::vector<int> seen = from;
  bool shows[kNothing + 1];
  std::fill(shows, shows + kNothing + 1, true);
  for (size_t at = 0; at < seen.size(); ++at) {
    const Node& node = nodes[seen[at]];
    if (node.kind == kNothing) seen.insert(seen.end(), node.from.begin(), node.from.end());
    for (int kind = 0; kind < kNothing; ++kind) {
      shows[kind] = shows[kind] && Shows(node.kind, static_cast<Kind>(kind));
    }
  }
  const int first = Below(kNothing + 1);
  for (int i = 0; i <= kNothing; ++i) {
    const auto kind = static_cast<Kind>((first + i) % (kNothing + 1));
    if (shows[kind]) return kind;
  }
  return kNothing;
}

void Graph::Plan() {
  for (int j = 0; j < kNodes; ++j) {
    Node& node = nodes[j];
    for (int edges = j == 0 ? 0 : Below(4); edges > 0; --edges) {
      const int from = j - 1 - Below(std::min(j, 8));
      if (std::count(node.from.begin(), node.from.end(), from) == 0) node.from.push_back(from);
    }
    node.kind = KindOf(node.from);
    for (int from : node.from) node.order.before |= nodes[from].order.before | 1u << from;
    for (int i = 0; i < j; ++i) {
      if (IsAmong(node.order.before, i)) nodes[i].order.after |= 1u << j;
    }
    calls[j] = {this, j};
    kinds.of[j] = node.kind;
  }
}

// The node that `work` puts into the stream.
template <class Work>
cudaGraphNode_t Graph::Capture(std::vector<cudaGraphNode_t> after, Work work) {
  CHECK(cudaStreamUpdateCaptureDependencies(stream, after.data(), nullptr, after.size(),
                                            cudaStreamSetCaptureDependencies));
  work();
  cudaStreamCaptureStatus status;
  const cudaGraphNode_t* newest = nullptr;
  size_t count = 0;
  CHECK(cudaStreamGetCaptureInfo(stream, &status, nullptr, nullptr, &newest, nullptr, &count));
  EXPECT(status == cudaStreamCaptureStatusActive && count == 1, "%zu nodes were captured", count);
  return newest[0];
}

cudaGraphNode_t Graph::AddKernel(cudaGraph_t to, int j, std::vector<cudaGraphNode_t> after) {
  int self = j;
  void* arguments[] = {&device, &kinds, &nodes[j].order, &self};
  cudaKernelNodeParams params = {};
  params.func = reinterpret_cast<void*>(Look);
  params.gridDim = params.blockDim = dim3(1);
  params.kernelParams = arguments;
  cudaGraphNode_t added = nullptr;
  CHECK(cudaGraphAddKernelNode(&added, to, after.data(), after.size(), &params));
  return added;
}

cudaGraphNode_t Graph::AddFunction(cudaHostFn_t run, void* data,
                                   std::vector<cudaGraphNode_t> after) {
  if (captured) {
    return Capture(after, [&] { CHECK(cudaLaunchHostFunc(stream, run, data)); });
  }
  cudaHostNodeParams params = {run, data};
  cudaGraphNode_t added = nullptr;
  CHECK(cudaGraphAddHostNode(&added, graph, after.data(), after.size(), &params));
  return added;
}

// Copies of a column: one int of each row.
cudaGraphNode_t Graph::AddCopy(int j, std::vector<cudaGraphNode_t> after) {
  const Kind kind = nodes[j].kind;
  void* from = kind == kUpload ? static_cast<void*>(host.ran) : device->tokens;
  void* to = kind == kDownload ? host.got[j]
             : kind == kCopy   ? device->copied[0] + j
                               : device->uploaded[0] + j;
  const size_t pitch = kind == kDownload ? sizeof(int) : sizeof(int) * kNodes;
  const auto way = kind == kUpload     ? cudaMemcpyHostToDevice
                   : kind == kDownload ? cudaMemcpyDeviceToHost
                                       : cudaMemcpyDeviceToDevice;
  if (captured) {
    return Capture(after, [&] {
      CHECK(cudaMemcpy2DAsync(to, pitch, from, sizeof(int), sizeof(int), kNodes + 1, way, stream));
    });
  }
  cudaMemcpy3DParms params = {};
  params.srcPtr = make_cudaPitchedPtr(from, sizeof(int), sizeof(int), kNodes + 1);
  params.dstPtr = make_cudaPitchedPtr(to, pitch, sizeof(int), kNodes + 1);
  params.extent = make_cudaExtent(sizeof(int), kNodes + 1, 1);
  params.kind = way;
  cudaGraphNode_t added = nullptr;
  CHECK(cudaGraphAddMemcpyNode(&added, graph, after.data(), after.size(), &params));
  return added;
}

// Events, memory of the graph, and what has no work at all.
cudaGraphNode_t Graph::AddNothing(std::vector<cudaGraphNode_t> after) {
  cudaGraphNode_t added = nullptr, freed = nullptr;
  if (captured) {
    return Capture(
        after, [&] { CHECK(cudaEventRecordWithFlags(event, stream, cudaEventRecordExternal)); });
  }
  switch (Below(plain ? 3 : 4)) {
    case 0:
      CHECK(cudaGraphAddEventRecordNode(&added, graph, after.data(), after.size(), event));
      return added;
    case 1:
      CHECK(cudaGraphAddEventWaitNode(&added, graph, after.data(), after.size(), event));
      return added;
    case 2:
      CHECK(cudaGraphAddEmptyNode(&added, graph, after.data(), after.size()));
      return added;
    default:
      break;
  }
  cudaMemAllocNodeParams params = {};
  params.poolProps.allocType = cudaMemAllocationTypePinned;
  params.poolProps.location.type = cudaMemLocationTypeDevice;
  params.bytesize = 4096;
  CHECK(cudaGraphAddMemAllocNode(&added, graph, after.data(), after.size(), &params));
  CHECK(cudaGraphAddMemFreeNode(&freed, graph, &added, 1, params.dptr));
  return freed;
}

cudaGraphNode_t Graph::Add(int j, std::vector<cudaGraphNode_t> after) {
  const Kind kind = nodes[j].kind;
  int* token = device->tokens + j;
  cudaGraphNode_t added = nullptr;
  if (kind == kNothing) return AddNothing(after);
  if (kind == kFunction) return AddFunction(Run, &calls[j], after);
  if (kind == kCopy || kind == kDownload || kind == kUpload) return AddCopy(j, after);
  if (captured) {
    return Capture(after, [&] {
      if (kind == kKernel) Look<<<1, 1, 0, stream>>>(device, kinds, nodes[j].order, j);
      if (kind != kKernel) CHECK(cudaMemsetAsync(token, 1, sizeof(int), stream));
      CHECK(cudaGetLastError());
    });
  }
  if (kind == kFill) {
    cudaMemsetParams params = {};
    params.dst = token;
    params.value = params.elementSize = params.height = params.width = 1;
    CHECK(cudaGraphAddMemsetNode(&added, graph, after.data(), after.size(), &params));
    return added;
  }
  if (kind == kWrite) {
    CUstreamBatchMemOpParams write = {};
    write.writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
    write.writeValue.address = reinterpret_cast<CUdeviceptr>(token);
    write.writeValue.value = 1;
    CUDA_BATCH_MEM_OP_NODE_PARAMS params = {context, 1, &write, 0};
    EXPECT(cuGraphAddBatchMemOpNode(&added, graph, after.data(), after.size(), &params) == 0,
           "a node of memory operations was refused");
    return added;
  }
  const int shape = Below(plain ? 2 : 3);
  if (shape == 0) return AddKernel(graph, j, after);
  if (shape == 1) {
    cudaGraph_t child = nullptr;
    cudaGraphNode_t first = nullptr;
    CHECK(cudaGraphCreate(&child, 0));
    CHECK(cudaGraphAddEmptyNode(&first, child, nullptr, 0));
    AddKernel(child, j, {first});
    CHECK(cudaGraphAddChildGraphNode(&added, graph, after.data(), after.size(), child));
    CHECK(cudaGraphDestroy(child));
    return added;
  }
  cudaGraphNodeParams params = {};
  params.type = cudaGraphNodeTypeConditional;
  params.conditional.type = cudaGraphCondTypeIf;
  params.conditional.size = 1;
  CHECK(cudaGraphConditionalHandleCreate(&params.conditional.handle, graph, 1,
                                         cudaGraphCondAssignDefault));
  CHECK(cudaGraphAddNode(&added, graph, after.data(), nullptr, after.size(), &params));
  AddKernel(params.conditional.phGraph_out[0], j, {});
  return added;
}

// Everything comes behind two nodes that begin the launch, and before two that look at the end.
void Graph::Build() {
  CHECK(cudaMalloc(&device, sizeof(Device)));
  CHECK(cudaMemset(device, 0, sizeof(Device)));
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  CHECK(cudaDeviceSynchronize());
  if (captured) {
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  } else {
    CHECK(cudaGraphCreate(&graph, 0));
  }
  Orders orders;
  for (int j = 0; j < kNodes; ++j) orders.of[j] = nodes[j].order;
  void *clears[] = {&device}, *judges[] = {&device, &kinds, &orders};
  auto kernel = [&](void* function, void** arguments, std::vector<cudaGraphNode_t> after) {
    cudaGraphNode_t added = nullptr;
    if (captured) {
      return Capture(after, [&] {
        CHECK(cudaLaunchKernel(function, dim3(1), dim3(1), arguments, 0, stream));
      });
    }
    cudaKernelNodeParams params = {};
    params.func = function;
    params.gridDim = params.blockDim = dim3(1);
    params.kernelParams = arguments;
    CHECK(cudaGraphAddKernelNode(&added, graph, after.data(), after.size(), &params));
    return added;
  };
  cudaGraphNode_t begin = AddFunction(Begin, nullptr, {});
  begin = kernel(reinterpret_cast<void*>(Clear), clears, {begin});
  std::vector<cudaGraphNode_t> all;
  for (int j = 0; j < kNodes; ++j) {
    std::vector<cudaGraphNode_t> after;
    for (int from : nodes[j].from) after.push_back(nodes[from].node);
    if (after.empty()) after.push_back(begin);
    nodes[j].node = Add(j, after);
    all.push_back(nodes[j].node);
  }
  const cudaGraphNode_t judge = kernel(reinterpret_cast<void*>(Judge), judges, all);
  AddFunction(End, this, {judge});
  if (captured) CHECK(cudaStreamEndCapture(stream, &graph));
}

enum Form { kItself, kClone, kChild };

static void TryOne(unsigned seed) {
  const bool captured = seed % 4 == 3;
  // NVIDIA's driver reads pageable memory ahead of a graph's host functions.
  const bool registered = captured || !IsSoftwareDevice();
  const auto form = static_cast<Form>(seed % 3);
  Graph made(seed, captured, form != kItself);
  CHECK(cudaFree(nullptr));
  cuCtxGetCurrent(&made.context);
  host = {};
  if (registered) CHECK(cudaHostRegister(&host, sizeof host, 0));
  made.Plan();
  made.Build();
  cudaGraph_t launched = made.graph;
  if (form == kClone) CHECK(cudaGraphClone(&launched, made.graph));
  if (form == kChild) {
    cudaGraphNode_t node = nullptr;
    CHECK(cudaGraphCreate(&launched, 0));
    CHECK(cudaGraphAddChildGraphNode(&node, launched, nullptr, 0, made.graph));
  }
  cudaGraphExec_t exec = nullptr;
  cudaStream_t streams[3];
  CHECK(cudaGraphInstantiate(&exec, launched, 0));
  for (auto& stream : streams) {
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  }
  for (int i = 0; i < kLaunches; ++i) CHECK(cudaGraphLaunch(exec, streams[i % 3]));
  CHECK(cudaDeviceSynchronize());
  int wrong = 0;
  CHECK(cudaMemcpy(&wrong, &made.device->wrong, sizeof wrong, cudaMemcpyDeviceToHost));
  EXPECT(host.ran[kNodes] == kLaunches, "graph %u was launched %d times", seed, host.ran[kNodes]);
  EXPECT(wrong == 0 && host.wrong == 0, "graph %u: %d orders were wrong on the device, %d here",
         seed, wrong, host.wrong);
  CHECK(cudaGraphExecDestroy(exec));
  if (form != kItself) CHECK(cudaGraphDestroy(launched));
  CHECK(cudaGraphDestroy(made.graph));
  if (registered) CHECK(cudaHostUnregister(&host));
  for (auto& stream : streams) CHECK(cudaStreamDestroy(stream));
  CHECK(cudaStreamDestroy(made.stream));
  CHECK(cudaEventDestroy(made.event));
  CHECK(cudaFree(made.device));
}

int main(int count, char** arguments) {
  const int seeds = count > 1 ? std::atoi(arguments[1]) : 16;
  for (int seed = 0; seed < seeds; ++seed) TryOne(static_cast<unsigned>(seed));
  return Pass("graph_orders");
}
