// Graphs in their executable form. Everything here is guarded by Driver::mutex.
#pragma once

#include <memory>

#include "softgpu/driver/graph.h"
#include "softgpu/driver/stream.h"

namespace softgpu {

struct GraphExec {
  std::shared_ptr<Graph> plan;  // a private clone; its nodes are not in Driver::nodes
  unsigned long long flags = 0;
  CompletionRef last;  // of the newest launch; the next one comes after it in whatever stream
};

// The executable's copy of a node of the graph it was made from, in child graphs and bodies too.
GraphNode* FindCopy(const Graph& plan, const void* original);
// Whether a node of an executable can become this: CUDA_ERROR_INVALID_VALUE.
CUresult CheckChange(const Operation& old, const Operation& changed);
// Whether an executable made from `plan` can take the graph's parameters: its nodes are paired in
// the order in which they were added. What stands in the way, and at which node.
CUgraphExecUpdateResult Compare(const Graph& plan, const Graph& graph, const GraphNode** culprit);
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
