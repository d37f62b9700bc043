// Conditions of graphs: values that kernels set, and by which nodes run their bodies or not.
#pragma once

#include <memory>
#include <vector>

#include "softgpu/driver/state/driver.h"

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
  bool used LONGWIRE_GUARDED_BY(Driver::mutex) = false;  // some node decides by it
};

// A node that runs none, one or one again and again of its bodies.
struct ConditionalOperation {
  std::shared_ptr<Condition> condition;
  CUgraphConditionalNodeType type = CU_GRAPH_COND_TYPE_IF;
  std::vector<std::shared_ptr<Graph>> bodies;

  // The body that is run now, given the condition's value; null: none.
  const std::shared_ptr<Graph>* Chosen() const;
};

}  // namespace softgpu
