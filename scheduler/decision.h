// What the scheduler answers: for one session on one device, how much may be given to the device.
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <limits>

#include "scheduler/types.h"

namespace longwire::scheduler {

// A call may be given to the device while fewer than `launches` are unfinished there, or while the
// unfinished ones together take less than `work`. So one launch longer than `work` runs alone.
struct Budget {
  static constexpr uint32_t kAnyNumber = std::numeric_limits<uint32_t>::max();

  uint32_t launches = kAnyNumber;
  std::chrono::microseconds work = std::chrono::microseconds::max();

  bool operator==(const Budget&) const = default;
};

// Replaces the session's earlier decision for the device. Until the first one its gate is closed.
struct Decision {
  SessionId session = 0;
  DeviceId device = 0;
  bool open = false;  // the gate: closed, no further call is given to the device
  // Closed, but one kernel may go to the device; each further one has the next number. 0: none may.
  uint32_t calls = 0;
  Budget budget;
  uint64_t copy_slice = 0;  // bytes; longer copies are cut into pieces of this size, 0: never

  bool operator==(const Decision&) const = default;
};

}  // namespace longwire::scheduler
