#include "scheduler/policies/strict_priority.h"
#include "scheduler/policies/weighted_fair.h"
#include "scheduler/policy.h"

namespace longwire::scheduler {

std::unique_ptr<Policy> MakePolicy(std::string_view name, SharedLimits limits) {
  if (name == "strict_priority") return std::make_unique<StrictPriority>(limits);
  if (name == "weighted_fair") return std::make_unique<WeightedFair>(limits);
  return nullptr;
}

}  // namespace longwire::scheduler
