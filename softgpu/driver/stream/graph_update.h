// What an executable's nodes may become.
#pragma once

#include "softgpu/driver/graph/graph.h"

namespace softgpu {

// The executable's copy of a node of the graph it was made from, in child graphs and bodies too.
GraphNode* FindCopy(const Graph& plan, const void* original) LONGWIRE_REQUIRES(Driver::mutex);
// Whether a node of an executable can become this: CUDA_ERROR_INVALID_VALUE.
CUresult CheckChange(const Operation& old, const Operation& changed)
    LONGWIRE_REQUIRES(Driver::mutex);
// Whether an executable made from `plan` can take the graph's parameters: its nodes are paired in
// the order in which they were added. What stands in the way, and at which node.
CUgraphExecUpdateResult Compare(const Graph& plan, const Graph& graph, const GraphNode** culprit)
    LONGWIRE_REQUIRES(Driver::mutex);

}  // namespace softgpu
