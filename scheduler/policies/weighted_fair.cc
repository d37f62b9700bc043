#include "scheduler/policies/weighted_fair.h"

namespace longwire::scheduler {

Regime WeightedFair::Decide(const DeviceSnapshot& device) const {
  Regime regime;
  regime.turns = device.best_effort_tenants > 1;
  if (regime.turns || device.latency_critical > 0) {
    regime.budget = limits_.budget;
    regime.copy_slice = limits_.copy_slice;
  }
  return regime;
}

}  // namespace longwire::scheduler
