// A policy sees a device and answers how it is shared. It owns no thread, clock or lock and keeps
// nothing between calls; turns, gangs, draining and fair order are the core's.
//
// To write another: derive, answer Decide, name it in MakePolicy, and show what it does in a
// transcript under testdata/.
#pragma once

#include <memory>
#include <string_view>

#include "scheduler/advice.h"
#include "scheduler/decision.h"
#include "scheduler/snapshot.h"

namespace longwire::scheduler {

// How one device is shared. Latency-critical sessions are open and unlimited whatever it says; the
// rest is about best-effort sessions.
struct Regime {
  bool turns = false;  // gangs take turns; otherwise all gates are open and the hardware shares
  Time hold_until{0};  // the gate of the turn stays closed until then, at most Options::max_wait
  Budget budget;
  uint64_t copy_slice = 0;

  bool operator==(const Regime&) const = default;
};

// The limits on best-effort sessions beside others that must not feel them.
struct SharedLimits {
  // What is in flight is what somebody else waits for when the gate closes.
  Budget budget{1, std::chrono::microseconds(250)};
  // 40 us at 55 GB/s: a copy cannot be stopped, so this is how long one occupies its engine.
  uint64_t copy_slice = 2 << 20;
};

class Policy {
 public:
  virtual ~Policy() = default;
  virtual Regime Decide(const DeviceSnapshot& device) const = 0;
  // Null: the built-in order and lengths of turns.
  virtual Advice* advice() const { return nullptr; }
};

// By name: "strict_priority", "weighted_fair"; null for any other.
std::unique_ptr<Policy> MakePolicy(std::string_view name, SharedLimits limits = {});

}  // namespace longwire::scheduler
