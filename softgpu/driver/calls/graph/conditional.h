// Conditional nodes of graphs.
#pragma once

#include "softgpu/driver/graph/graph.h"

namespace softgpu {

CUresult AddConditionalNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                            size_t count, CUDA_CONDITIONAL_NODE_PARAMS* params);

// Whether the graph can be made executable. CUDA_ERROR_INVALID_VALUE, and why.
CUresult CheckConditions(const Graph& graph, CUgraphInstantiateResult* result)
    LONGWIRE_REQUIRES(Driver::mutex);

}  // namespace softgpu
