// The scheduler's policy: what is built in, and an operator's program beside it.
#include <sys/eventfd.h>

#include <utility>

#include "policy/advised.h"
#include "server/daemon/sessions/scheduling.h"

namespace longwire::daemon {

std::unique_ptr<scheduler::Policy> Scheduling::MakePolicy() const {
  auto policy = scheduler::MakePolicy(options_.policy);
  return program_ == nullptr ? std::move(policy) : policy::MakeAdvised(std::move(policy), program_);
}

void Scheduling::TakePolicy() {
  auto policy = MakePolicy();
  std::swap(policy_, policy);  // the old one lives until the core has the new one
  const scheduler::SharingChanged change{policy_.get(), options_.times};
  if (options_.enabled) {
    Deliver(change);
  } else {
    core_.On(Now(), change);  // it has no sessions
  }
}

// What an earlier one said about tenants holds no longer.
void Scheduling::TakeProgram(std::shared_ptr<policy::Program> program) {
  program_ = std::move(program);
  TakePolicy();
  for (auto& [id, worker] : workers_) {
    const scheduler::SessionInfo& info = worker.info;
    Deliver(scheduler::TenantChanged{info.tenant, info.priority_class, info.weight});
  }
  TakeClasses();
}

void Scheduling::Use(std::shared_ptr<policy::Program> program) {
  base::MutexLock lock(mutex_);
  if (program == program_) return;
  TakeProgram(std::move(program));
  eventfd_write(wake_.get(), 1);
}

// A policy may say another class than the configuration.
void Scheduling::TakeClasses() {
  if (!options_.enabled) return;
  for (auto& [number, device] : devices_) {
    for (Seat& seat : device.seats) {
      if (const auto known = core_.ClassOf(seat.tenant)) {
        seat.best_effort = *known == scheduler::PriorityClass::kBestEffort;
      }
    }
  }
}

// It was slow or answered nonsense: what it said about tenants goes with it.
void Scheduling::DropEndedProgram() {
  if (program_ == nullptr || !program_->ended()) return;
  TakeProgram(nullptr);
}

}  // namespace longwire::daemon
