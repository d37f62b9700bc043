#include "scheduler/policies/strict_priority.h"

namespace longwire::scheduler {

Regime StrictPriority::Decide(const DeviceSnapshot& device) const {
  if (device.latency_critical == 0) return {};
  return {true, device.busy_until, limits_.budget, limits_.copy_slice};
}

}  // namespace longwire::scheduler
