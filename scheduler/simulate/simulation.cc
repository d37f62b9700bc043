#include "scheduler/simulate/simulation.h"

#include <algorithm>

namespace longwire::scheduler::simulate {

namespace {

double Percentile(std::vector<float>& values, double part) {
  if (values.empty()) return 0;
  const auto at = static_cast<size_t>(part * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), values.begin() + static_cast<ptrdiff_t>(at), values.end());
  return values[at];
}

}  // namespace

Simulation::Simulation(const std::vector<Profile>& profiles, const Policy& policy,
                       const Options& options, uint64_t seed)
    : profiles_(profiles), random_(seed), core_(policy, options) {
  for (const Profile& profile : profiles_) {
    Gpu& gpu = gpus_[profile.device];
    const SessionId id = sessions_.size() + 1;
    sessions_.push_back(std::make_unique<SimulatedSession>(id, profile, gpu, random_));
    SimulatedSession& session = *sessions_.back();
    Tell(Time{0}, SessionOpened{session.Info()});
    if (profile.gap > Time{0}) {
      Tell(Time{0}, LaunchGapObserved{id, profile.device, profile.gap});
    }
    After(Time{0}, session, session.Begin());
  }
}

Result Simulation::Run(Time until) {
  for (Time now = NextTime(); now <= until; now = NextTime()) StepAt(now);
  return Summarize(until);
}

Time Simulation::NextTime() const {
  Time next = core_.next_tick().value_or(kForever);
  if (!calendar_.empty()) next = std::min(next, std::get<Time>(calendar_.top()));
  if (!reports_.empty()) next = std::min(next, reports_.front().first);
  if (!decisions_.empty()) next = std::min(next, decisions_.front().first);
  for (const auto& [id, gpu] : gpus_) next = std::min(next, gpu.next_end());
  return next;
}

// One thing that is due at `now`, of each kind.
void Simulation::StepAt(Time now) {
  for (auto& [id, gpu] : gpus_) {
    if (gpu.next_end() > now) continue;
    SimulatedSession& session = *sessions_[gpu.End(now) - 1];
    After(now, session, session.OnKernelEnd(now));
  }
  if (!decisions_.empty() && decisions_.front().first <= now) {
    const Decision decision = decisions_.front().second;
    decisions_.pop_front();
    SimulatedSession& session = *sessions_[decision.session - 1];
    session.OnDecision(now, decision);
    After(now, session, {});
  }
  if (!calendar_.empty() && std::get<Time>(calendar_.top()) <= now) {
    const auto [time, number, index, what] = calendar_.top();
    calendar_.pop();
    SimulatedSession& session = *sessions_[index];
    if (what == Later::kRequest) session.OnRequest(now);
    if (what == Later::kLaunch) session.OnLaunch(now);
    After(now, session, {});
  }
  if (!reports_.empty() && reports_.front().first <= now) {
    const ActivityReported report = reports_.front().second;
    reports_.pop_front();
    Tell(now, report);
  }
  if (core_.next_tick().value_or(kForever) <= now) Tell(now, Tick{});
}

void Simulation::Tell(Time now, const Event& event) {
  ++events_;
  for (const Decision& decision : core_.On(now, event)) {
    decisions_.emplace_back(now + kHop, decision);
  }
}

// What follows from something that happened to the session.
void Simulation::After(Time now, SimulatedSession& session, Appointment appointment) {
  const auto index = static_cast<uint32_t>(session.id() - 1);
  if (appointment.what != Later::kNothing) {
    calendar_.emplace(appointment.at, ++entries_, index, appointment.what);
  }
  if (auto report = session.TakeReport(now)) reports_.emplace_back(now + kHop, *report);
}

Result Simulation::Summarize(Time until) {
  Result result;
  std::vector<float> waits;
  Time all{0};
  for (const auto& session : sessions_) all += session->gpu_time();
  for (const auto& session : sessions_) {
    TenantResult tenant;
    tenant.tenant = session->profile().tenant;
    tenant.gpu_time = session->gpu_time();
    tenant.share = static_cast<double>(tenant.gpu_time.count()) /
                   static_cast<double>(std::max(all, Time{1}).count());
    tenant.requests = session->requests();
    result.tenants.push_back(tenant);
    waits.insert(waits.end(), session->waits().begin(), session->waits().end());
    result.longest_starved = std::max(result.longest_starved, session->longest_starved());
  }
  result.latency_critical_requests = waits.size();
  result.wait_p50 = Percentile(waits, 0.5);
  result.wait_p99 = Percentile(waits, 0.99);
  result.counters = core_.snapshot().counters;
  result.events = events_;
  result.busy = static_cast<double>(all.count()) /
                (static_cast<double>(until.count()) * static_cast<double>(gpus_.size()));
  return result;
}

}  // namespace longwire::scheduler::simulate
