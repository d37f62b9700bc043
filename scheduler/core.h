// The scheduler: events and time in, decisions out. No thread, clock or lock of its own: one caller
// at a time. An event costs O(log n) in sessions, except where it changes how a whole device is
// shared (the first latency-critical session comes, the last one goes): then O(sessions there).
//
//   const std::unique_ptr<Policy> policy = MakePolicy("strict_priority");
//   Core core(*policy, Options{});
//   for (const Decision& decision : core.On(now, SessionOpened{info})) Send(decision);
//   … and On(now, Tick{}) when next_tick() has come.
#pragma once

#include <optional>
#include <vector>

#include "scheduler/changes.h"
#include "scheduler/decision.h"
#include "scheduler/event.h"
#include "scheduler/options.h"
#include "scheduler/policy.h"
#include "scheduler/registry.h"
#include "scheduler/snapshot.h"
#include "scheduler/turns.h"

namespace longwire::scheduler {

class Core {
 public:
  // The policy must outlive this object. Options out of range are moved into it.
  Core(const Policy& policy, const Options& options);
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  // What changes because of the event and of the time that has passed. A time before an earlier one
  // counts as that one.
  std::vector<Decision> On(Time now, const Event& event);

  // When it wants the next Tick: later than the last On; none while nothing is due.
  std::optional<Time> next_tick() const { return turns_.next(); }

  // Everything, for people and for metrics; O(n).
  Snapshot snapshot() const;
  // The tenant's terms as they are in force; none: it has no session.
  std::optional<TenantTerms> TermsOf(const TenantName& tenant) const;

 private:
  void Handle(const SessionOpened& event);
  void Handle(const SessionClosed& event);
  void Handle(const TenantChanged& event);
  void Handle(const ActivityReported& event);
  void Handle(const LaunchGapObserved& event);
  void Handle(const GangJoined& event);
  void Handle(const SharingChanged& event);
  // The configured terms of a session's tenant, and what the policy's program makes of them.
  TenantChanged Advised(const TenantChanged& configured, SessionId session, size_t devices) const;
  void SetTenant(const TenantChanged& terms);
  void Handle(const Tick&) {}

  Options options_;
  Registry registry_;
  Changes changes_;
  Turns turns_;
  Time now_{0};
};

}  // namespace longwire::scheduler
