// Graphs, their executable form, and stream capture. Everything here is guarded by Driver::mutex
// unless a comment says otherwise.
#pragma once

#include <list>
#include <thread>

#include "softgpu/driver/stream.h"
#include "softgpu/driver/user_object.h"

namespace softgpu {

struct GraphNode {
  Graph* graph = nullptr;
  Operation operation;
  std::vector<GraphNode*> dependencies;
  const GraphNode* original = nullptr;  // of a clone's node: the node it was copied from
  bool enabled = true;
  std::vector<void*> parameter_pointers;  // what KernelNodeGetParams hands out
  std::vector<CUgraph> bodies;            // what adding a conditional node hands out
};

struct Graph {
  std::vector<std::shared_ptr<GraphNode>> nodes;  // in the order in which they were added
  bool owned_by_node = false;                     // a child graph: its parent destroys it
  bool moved = false;                             // a child graph that was its own before
  UserReferences user_objects;
  std::vector<std::shared_ptr<Condition>> conditions;  // made for it
};

struct GraphExec {
  std::shared_ptr<Graph> plan;  // a private clone; its nodes are not in Driver::nodes
  unsigned long long flags = 0;
  CompletionRef last;  // of the newest launch; the next one comes after it in whatever stream
};

struct Capture {
  std::shared_ptr<Graph> graph;
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  Stream* origin = nullptr;
  std::thread::id thread;
  uint64_t id = 0;
  bool invalidated = false;
  bool to_existing_graph = false;
  std::vector<std::shared_ptr<Stream>> members;  // origin first
};

// Adds a node that depends on what the capturing `stream` stands at. Driver::mutex held.
CUresult AddCaptured(Stream& stream, Operation operation);
// 906 if `stream` is the legacy one while a blocking stream of its context captures.
CUresult CheckLegacyCapture(Stream& stream);
// 900 (and the capture is spoilt) if a call that could disturb captures is made by a thread whose
// capture mode forbids it. Takes Driver::mutex.
CUresult CheckUnsafeInCapture();
// Enter for such calls.
CUresult EnterUnsafe(Context** context = nullptr);
// For what no capture can hold, as waits and questions: 900, and the capture is spoilt, if `stream`
// captures; else as CheckLegacyCapture. Driver::mutex held.
CUresult RefuseWhileCapturing(Stream& stream);
CUstreamCaptureMode& ThreadCaptureMode();

inline CUgraphNode NodeHandle(const GraphNode* node) {
  return reinterpret_cast<CUgraphNode>(const_cast<GraphNode*>(node));
}
std::shared_ptr<GraphNode> AddNode(Graph& graph, Operation operation,
                                   std::vector<GraphNode*> dependencies, bool visible = true);
// The graphs within a node: a child graph, the bodies of a conditional node.
std::vector<std::shared_ptr<Graph>> ChildrenOf(const Operation& operation);
// Whether it has nodes of which there can be no copies: conditional ones, of memory.
bool IsUnique(const Graph& graph);
// The executable's copy of a node of the graph it was made from, in child graphs and bodies too.
GraphNode* FindCopy(const Graph& plan, const void* original);
// Whether a node of an executable can become this: CUDA_ERROR_INVALID_VALUE.
CUresult CheckChange(const Operation& old, const Operation& changed);
// Whether an executable made from `plan` can take the graph's parameters: its nodes are paired in
// the order in which they were added. What stands in the way, and at which node.
CUgraphExecUpdateResult Compare(const Graph& plan, const Graph& graph, const GraphNode** culprit);
// A copy whose nodes know their originals; `visible` puts graph nodes into the handle tables.
std::shared_ptr<Graph> CloneGraph(const Graph& graph, bool visible);
// Nodes so that each comes after its dependencies; empty if there is a cycle (and nodes).
std::vector<GraphNode*> SortNodes(const Graph& graph);
void ForgetNodes(Graph& graph);
CUgraphNodeType TypeOf(const Operation& operation);
CUresult LaunchGraph(GraphExec& exec, Stream& stream);

// Memory of graphs, Driver::mutex held. Of a graph that allocates there is one executable at a
// time: CUDA_ERROR_NOT_SUPPORTED if there is another.
CUresult ClaimGraphMemory(const std::shared_ptr<GraphExec>& exec);
// A launch allocates what its nodes say and frees what they
// say: CUDA_ERROR_INVALID_VALUE, and nothing done, if something of it is still allocated.
CUresult TakeGraphMemory(const GraphExec& exec);
// The memory is no longer allocated, and can go when the result does; null if it was not.
std::shared_ptr<GraphMemory> FreeGraphMemory(CUdeviceptr address);

}  // namespace softgpu
