// A device as the core knows it: who sits on it, who waits for it and whose turn it is.
#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>

#include "scheduler/fair_queue.h"
#include "scheduler/policy.h"
#include "scheduler/state.h"

namespace longwire::scheduler {

struct Device {
  DeviceId id = 0;
  std::map<SessionId, Seat*> seats;
  uint32_t latency_critical = 0;         // seats
  uint32_t latency_critical_active = 0;  // of these, with calls
  Time quiet_at{0};                      // when the gaps of those that went idle have passed
  std::unordered_map<const Tenant*, uint32_t> best_effort;  // seats
  Regime regime;

  FairQueue queue;               // gangs of this device alone
  std::map<Ticket, Gang*> wide;  // gangs of several devices
  Gang* holder = nullptr;        // whose turn it is, or drains
  bool last_was_wide = false;    // the last turn
  bool unsettled = false;        // waits in Turns::Settle
  GpuAccount* account = nullptr;

  bool contended() const { return !queue.empty() || !wide.empty(); }
  DeviceSnapshot Snapshot() const;
};

// Changes a seat's activity and all that is counted by it.
void SetActivity(Seat& seat, Activity activity);
// Adds the seat to its device's counts of class and tenant, or with -1 takes it out.
void CountSeat(Seat& seat, int change);

}  // namespace longwire::scheduler
