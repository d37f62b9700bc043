// What somebody who only sees events and decisions knows, and the rules that must hold for it.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "scheduler/decision.h"
#include "scheduler/event.h"

namespace longwire::scheduler::testing {

class Mirror {
 public:
  // `by_priority`: the rules of strict_priority, else those of weighted_fair.
  explicit Mirror(bool by_priority) : by_priority_(by_priority) {}

  // Applies an event and then the decisions that followed from it. Each returns the first rule that
  // is broken, or nothing.
  void Apply(const Event& event);
  std::string Apply(const std::vector<Decision>& decisions);
  // Rules about all sessions and devices as they are now.
  std::string Check() const;

  struct MirroredSession {
    SessionInfo info;
    uint64_t gang = 0;
    std::map<DeviceId, Decision> told;
  };
  const std::map<SessionId, MirroredSession>& sessions() const { return sessions_; }
  bool best_effort(const MirroredSession& session) const {
    return tenants_.at(session.info.tenant) == PriorityClass::kBestEffort;
  }

 private:
  void Open(const SessionInfo& info);
  void Join(SessionId first, SessionId second);
  struct Sharing {
    bool latency_critical = false;  // such a session is open there
    std::set<TenantName> best_effort;
    std::set<uint64_t> open_gangs;
  };
  using Devices = std::map<DeviceId, Sharing>;
  // Whether best-effort gangs take turns there.
  bool HasTurns(const Sharing& device) const;
  std::string CheckSeat(const MirroredSession& session, const Decision& decision,
                        const Sharing& device) const;
  std::string CheckGang(const std::vector<const MirroredSession*>& members,
                        const Devices& devices) const;

  const bool by_priority_;
  std::map<SessionId, MirroredSession> sessions_;
  std::map<TenantName, PriorityClass> tenants_;
  std::map<std::pair<TenantName, std::string>, uint64_t> named_;
  uint64_t gangs_ = 0;
};

}  // namespace longwire::scheduler::testing
