// What the scheduler knows, as values: a device as its policy sees it, and everything for people.
#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/decision.h"
#include "scheduler/event.h"
#include "scheduler/types.h"

namespace longwire::scheduler {

// All that a policy may base its answer on: it changes with sessions and with latency-critical
// activity, not with turns, so an answer never undoes its own reason.
struct DeviceSnapshot {
  Time now{0};  // when the policy is asked
  DeviceId device = 0;
  uint32_t latency_critical = 0;     // sessions
  uint32_t best_effort = 0;          // sessions
  uint32_t best_effort_tenants = 0;  // to whom these belong
  // Latency-critical work is there until then: kForever while some has calls, then the time at
  // which its longest gap will have passed. In the past: idle.
  Time busy_until{0};
};

struct DeviceStatus {
  DeviceSnapshot now;
  bool turns = false;           // best-effort gangs take turns
  uint32_t waiting = 0;         // gangs that wait for a turn
  std::vector<SessionId> turn;  // the gang whose turn it is or whose turn drains
  double busy = 0;              // share of the window in which the device worked
};

struct SeatStatus {
  Decision decision;
  Activity activity = Activity::kIdle;
  Time gpu_time{0};
};

struct TenantStatus {
  TenantName tenant;
  PriorityClass priority_class = PriorityClass::kBestEffort;
  uint32_t weight = 1;
  Time gpu_time{0};  // since the scheduler began, all devices
  double share = 0;  // of the GPU time that all tenants used within the window
};

struct Counters {
  uint64_t turns = 0;     // begun
  uint64_t overruns = 0;  // turns that had not drained when the next gate opened
  uint64_t forced = 0;    // gates opened beside latency-critical work because of max_wait
};

struct Snapshot {
  std::vector<DeviceStatus> devices;
  std::vector<SeatStatus> seats;  // by session, then device
  std::vector<TenantStatus> tenants;
  Counters counters;
};

}  // namespace longwire::scheduler
