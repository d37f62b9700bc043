// What changes for sessions that run already.
#include <sys/eventfd.h>

#include <utility>

#include "server/daemon/sessions/scheduling.h"

namespace longwire::daemon {

using scheduler::PriorityClass;

// The name lasts, for a scheduler that is switched off and on.
void Scheduling::Join(uint64_t first, uint64_t second) {
  base::MutexLock lock(mutex_);
  auto one = workers_.find(first), other = workers_.find(second);
  if (one == workers_.end() || other == workers_.end()) return;
  std::string& name = one->second.info.gang;
  if (name.empty()) name = "of session " + std::to_string(first);
  const std::string before = std::exchange(other->second.info.gang, name);
  for (auto& [id, worker] : workers_) {
    if (!before.empty() && worker.info.gang == before) worker.info.gang = name;
  }
  Deliver(scheduler::GangJoined{first, second});
  WatchSharedDevices();
  eventfd_write(wake_.get(), 1);
}

void Scheduling::ChangeTenant(const std::string& tenant, PriorityClass priority_class,
                              uint32_t weight) {
  base::MutexLock lock(mutex_);
  for (auto& [id, worker] : workers_) {
    if (worker.info.tenant != tenant) continue;
    worker.info.priority_class = priority_class;
    worker.info.weight = weight;
  }
  Deliver(scheduler::TenantChanged{tenant, priority_class, weight});
  TakeTerms();
  eventfd_write(wake_.get(), 1);
}

void Scheduling::Change(const SchedulingOptions& options) {
  base::MutexLock lock(mutex_);
  if (scheduler::MakePolicy(options.policy) == nullptr) return;
  const bool was_enabled = options_.enabled;
  if (was_enabled && !options.enabled) {
    for (auto& [id, worker] : workers_) Deliver(scheduler::SessionClosed{id});
  }
  options_ = options;
  TakePolicy();
  if (!options_.enabled) OpenAllGates();
  if (!was_enabled && options_.enabled) {
    for (auto& [number, device] : devices_) {
      for (Seat& seat : device.seats) seat.core_from = seat.gpu_time;
    }
    for (auto& [id, worker] : workers_) Deliver(scheduler::SessionOpened{worker.info});
  }
  TakeTerms();
  for (auto& [number, device] : devices_) {
    for (Seat& seat : device.seats) SetTimeSlice(seat);
  }
  WatchSharedDevices();
  eventfd_write(wake_.get(), 1);
}

void Scheduling::OpenAllGates() {
  for (auto& [number, device] : devices_) {
    for (Seat& seat : device.seats) {
      gates::DeviceGate& gate = seat.gate();
      gate.budget_calls = gate.budget_microseconds = gate.copy_slice_bytes = 0;
      gate.closed = 0;
      seat.limited = false;
      seat.page->RingWorker();
    }
  }
}

SchedulingOptions Scheduling::options() {
  base::MutexLock lock(mutex_);
  return options_;
}

}  // namespace longwire::daemon
