// What the scheduler has counted.
#include "server/daemon/sessions/scheduling.h"

namespace longwire::daemon {

scheduler::Counters Scheduling::counters() {
  base::MutexLock lock(mutex_);
  return core_.snapshot().counters;
}

std::map<std::string, gates::AllLatencies> Scheduling::Latencies() {
  base::MutexLock lock(mutex_);
  auto sums = ended_latencies_;
  for (const auto& [id, worker] : workers_) worker.page->AddLatencies(&sums[worker.info.tenant]);
  return sums;
}

std::set<uint64_t> Scheduling::BestEffort() {
  base::MutexLock lock(mutex_);
  std::set<uint64_t> sessions;
  for (const auto& [number, device] : devices_) {
    for (const Seat& seat : device.seats) {
      if (seat.best_effort) sessions.insert(seat.session);
    }
  }
  return sessions;
}

std::map<std::string, std::chrono::nanoseconds> Scheduling::GpuTimes() {
  base::MutexLock lock(mutex_);
  for (auto& [number, device] : devices_) Account(device);
  return gpu_times_;
}

}  // namespace longwire::daemon
