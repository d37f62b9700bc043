// Latency-critical sessions first: while one is on the device, best-effort gangs take turns with
// little in flight, and wait while it has work. On other devices the hardware shares.
#pragma once

#include "scheduler/policy.h"

namespace longwire::scheduler {

class StrictPriority : public Policy {
 public:
  explicit StrictPriority(SharedLimits limits) : limits_(limits) {}
  Regime Decide(const DeviceSnapshot& device) const override;

 private:
  const SharedLimits limits_;
};

}  // namespace longwire::scheduler
