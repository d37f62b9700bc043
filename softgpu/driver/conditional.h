// Conditional nodes: bodies that run depending on a value that kernels set.
#pragma once

#include "softgpu/driver/driver.h"

namespace softgpu {

// What a CUgraphConditionalHandle stands for; the handle is its address.
struct Condition {
  Condition();
  ~Condition();
  Condition(const Condition&) = delete;
  Condition& operator=(const Condition&) = delete;

  CUgraphConditionalHandle handle() const { return reinterpret_cast<uint64_t>(this); }

  uint32_t initial = 0;
  bool assigned = false;  // the initial value is set with each launch
  bool used = false;      // some node decides by it; guarded by Driver::mutex
};

// A node that runs none, one or one again and again of its bodies.
struct ConditionalOperation {
  std::shared_ptr<Condition> condition;
  CUgraphConditionalNodeType type = CU_GRAPH_COND_TYPE_IF;
  std::vector<std::shared_ptr<Graph>> bodies;

  // The body that is run now, given the condition's value; null: none.
  const std::shared_ptr<Graph>* Chosen() const;
};

CUresult AddConditionalNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                            size_t count, CUDA_CONDITIONAL_NODE_PARAMS* params);

// Whether the graph can be made executable. CUDA_ERROR_INVALID_VALUE, and why.
CUresult CheckConditions(const Graph& graph, CUgraphInstantiateResult* result);

}  // namespace softgpu
