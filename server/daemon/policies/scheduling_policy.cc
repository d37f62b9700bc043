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
  TakeTerms();
}

void Scheduling::Use(std::shared_ptr<policy::Program> program) {
  base::MutexLock lock(mutex_);
  if (program == program_) return;
  TakeProgram(std::move(program));
  eventfd_write(wake_.get(), 1);
}

// A policy may say others than the configuration. While the scheduler is off nobody asks it.
void Scheduling::TakeTerms() {
  std::map<std::string, scheduler::TenantTerms> terms;
  for (const auto& [id, worker] : workers_) {
    terms[worker.info.tenant] = {worker.info.priority_class, worker.info.weight};
  }
  for (auto& [tenant, its] : terms) {
    if (options_.enabled) its = core_.TermsOf(tenant).value_or(its);
  }
  for (auto& [number, device] : devices_) {
    for (Seat& seat : device.seats) {
      const bool best_effort =
          terms[seat.tenant].priority_class == scheduler::PriorityClass::kBestEffort;
      if (std::exchange(seat.best_effort, best_effort) != best_effort) SetTimeSlice(seat);
    }
  }
  if (terms == terms_) return;
  terms_ = std::move(terms);
  terms_told_ = false;
  eventfd_write(wake_.get(), 1);
}

std::map<std::string, scheduler::TenantTerms> Scheduling::Terms() {
  base::MutexLock lock(mutex_);
  return terms_;
}

// It was slow or answered nonsense: what it said about tenants goes with it.
void Scheduling::DropEndedProgram() {
  if (program_ == nullptr || !program_->ended()) return;
  TakeProgram(nullptr);
}

}  // namespace longwire::daemon
