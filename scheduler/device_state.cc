#include "scheduler/device_state.h"

namespace longwire::scheduler {

namespace {

uint32_t* CountedIn(Gang& gang, Activity activity) {
  if (activity == Activity::kQueued) return &gang.queued;
  return activity == Activity::kRunning ? &gang.running : nullptr;
}

}  // namespace

DeviceSnapshot Device::Snapshot() const {
  DeviceSnapshot snapshot;
  snapshot.device = id;
  snapshot.latency_critical = latency_critical;
  snapshot.best_effort = static_cast<uint32_t>(seats.size()) - latency_critical;
  snapshot.best_effort_tenants = static_cast<uint32_t>(best_effort.size());
  snapshot.busy_until = latency_critical_active > 0 ? kForever : quiet_at;
  return snapshot;
}

void SetActivity(Seat& seat, Activity activity) {
  Gang& gang = *seat.session->gang;
  if (uint32_t* count = CountedIn(gang, seat.activity)) --*count;
  if (uint32_t* count = CountedIn(gang, activity)) ++*count;
  if (!seat.session->tenant->best_effort()) {
    seat.device->latency_critical_active -= seat.activity != Activity::kIdle;
    seat.device->latency_critical_active += activity != Activity::kIdle;
  }
  seat.activity = activity;
}

void CountSeat(Seat& seat, int change) {
  Device& device = *seat.device;
  const Tenant* tenant = seat.session->tenant;
  if (tenant->best_effort()) {
    const uint32_t seats = device.best_effort[tenant] += static_cast<uint32_t>(change);
    if (seats == 0) device.best_effort.erase(tenant);
  } else {
    device.latency_critical += static_cast<uint32_t>(change);
    if (seat.activity != Activity::kIdle) {
      device.latency_critical_active += static_cast<uint32_t>(change);
    }
  }
}

}  // namespace longwire::scheduler
