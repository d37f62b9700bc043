// Shares by weight: best-effort gangs take turns wherever two tenants meet, because the hardware
// shares a device equally by context, not by tenant or weight. Latency-critical sessions hold
// nobody back.
#pragma once

#include "scheduler/policy.h"

namespace longwire::scheduler {

class WeightedFair : public Policy {
 public:
  explicit WeightedFair(SharedLimits limits) : limits_(limits) {}
  Regime Decide(const DeviceSnapshot& device) const override;

 private:
  const SharedLimits limits_;
};

}  // namespace longwire::scheduler
