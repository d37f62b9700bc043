#include "softgpu/driver/graph/condition.h"

#include "softgpu/engine/run/conditions.h"

namespace softgpu {

Condition::Condition() { DefineCondition(handle(), 0); }
Condition::~Condition() { ForgetCondition(handle()); }

const std::shared_ptr<Graph>* ConditionalOperation::Chosen() const {
  uint32_t value = ConditionValue(condition->handle());
  size_t index = value;
  if (type == CU_GRAPH_COND_TYPE_WHILE) index = value != 0 ? 0 : bodies.size();
  if (type == CU_GRAPH_COND_TYPE_IF) index = value != 0 ? 0 : 1;
  return index < bodies.size() ? &bodies[index] : nullptr;
}

}  // namespace softgpu
