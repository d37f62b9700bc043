#include "scheduler/testing/mirror.h"

#include <algorithm>

namespace longwire::scheduler::testing {

namespace {

std::string At(SessionId session, DeviceId device) {
  return "session " + std::to_string(session) + " on device " + std::to_string(device) + ": ";
}

}  // namespace

void Mirror::Open(const SessionInfo& info) {
  if (sessions_.contains(info.id)) return;
  tenants_[info.tenant] = info.priority_class;
  MirroredSession& session = sessions_[info.id];
  session.info = info;
  session.gang = ++gangs_;
  if (info.gang.empty()) return;
  session.gang = named_.try_emplace({info.tenant, info.gang}, session.gang).first->second;
}

void Mirror::Join(SessionId first, SessionId second) {
  if (!sessions_.contains(first) || !sessions_.contains(second)) return;
  if (sessions_[first].info.tenant != sessions_[second].info.tenant) return;
  const uint64_t into = sessions_[first].gang;
  const uint64_t from = sessions_[second].gang;
  for (auto& [id, session] : sessions_) {
    if (session.gang == from) session.gang = into;
  }
  for (auto& [name, gang] : named_) {
    if (gang == from) gang = into;
  }
}

void Mirror::Apply(const Event& event) {
  if (const auto* opened = std::get_if<SessionOpened>(&event)) Open(opened->session);
  if (const auto* joined = std::get_if<GangJoined>(&event)) Join(joined->first, joined->second);
  if (const auto* changed = std::get_if<TenantChanged>(&event)) {
    tenants_[changed->tenant] = changed->priority_class;
  }
  if (const auto* closed = std::get_if<SessionClosed>(&event)) {
    sessions_.erase(closed->session);
    std::erase_if(named_, [&](const auto& named) {
      return std::none_of(sessions_.begin(), sessions_.end(),
                          [&](const auto& session) { return session.second.gang == named.second; });
    });
  }
}

std::string Mirror::Apply(const std::vector<Decision>& decisions) {
  bool opened = false;
  for (const Decision& decision : decisions) {
    const std::string at = At(decision.session, decision.device);
    auto found = sessions_.find(decision.session);
    if (found == sessions_.end()) return at + "a decision about a session that is not open";
    const auto& devices = found->second.info.devices;
    if (std::find(devices.begin(), devices.end(), decision.device) == devices.end()) {
      return at + "a decision about a device that is not the session's";
    }
    const auto [told, is_new] = found->second.told.try_emplace(decision.device, decision);
    if (!is_new && told->second == decision) return at + "a decision that changes nothing";
    told->second = decision;
    if (opened && !decision.open) return at + "closes after another has opened";
    opened |= decision.open;
  }
  return "";
}

bool Mirror::HasTurns(const Sharing& device) const {
  return by_priority_ ? device.latency_critical : device.best_effort.size() > 1;
}

std::string Mirror::Check() const {
  Devices devices;
  std::map<uint64_t, std::vector<const MirroredSession*>> gangs;
  for (const auto& [id, session] : sessions_) {
    gangs[session.gang].push_back(&session);
    for (DeviceId device : session.info.devices) {
      if (!session.told.contains(device)) return At(id, device) + "was never told anything";
      Sharing& sharing = devices[device];
      sharing.latency_critical |= !best_effort(session);
      if (!best_effort(session)) continue;
      sharing.best_effort.insert(session.info.tenant);
      if (session.told.at(device).open) sharing.open_gangs.insert(session.gang);
    }
  }
  for (const auto& [id, device] : devices) {
    if (HasTurns(device) && device.open_gangs.size() > 1) {
      return "device " + std::to_string(id) + " has turns and the gates of several gangs open";
    }
  }
  for (const auto& [id, session] : sessions_) {
    for (const auto& [device, decision] : session.told) {
      std::string fault = CheckSeat(session, decision, devices.at(device));
      if (!fault.empty()) return At(id, device) + fault;
    }
  }
  for (const auto& [gang, members] : gangs) {
    std::string fault = CheckGang(members, devices);
    if (!fault.empty()) return "gang " + std::to_string(gang) + ": " + fault;
  }
  return "";
}

std::string Mirror::CheckSeat(const MirroredSession& session, const Decision& decision,
                              const Sharing& device) const {
  const bool unlimited = decision.budget == Budget{} && decision.copy_slice == 0;
  if (best_effort(session)) {
    if (decision.open && decision.calls != 0) return "open, and for one call";
    const bool limited = HasTurns(device) || device.latency_critical;
    return unlimited == limited ? "best effort with the wrong limits" : "";
  }
  if (!decision.open) return "latency critical and closed";
  return unlimited ? "" : "latency critical and limited";
}

std::string Mirror::CheckGang(const std::vector<const MirroredSession*>& members,
                              const Devices& devices) const {
  if (!best_effort(*members.front())) return "";
  bool turns = false, all_complete = true;
  std::set<bool> gates;
  for (const MirroredSession* session : members) {
    for (const auto& [device, decision] : session->told) {
      turns |= HasTurns(devices.at(device));
      all_complete &= decision.calls != 0;
      gates.insert(decision.open);
    }
  }
  if (gates.size() > 1) return "does not move as one";
  if (all_complete) return "goes on though nothing of it drains";
  return !turns && gates.contains(false) ? "closed where nobody takes turns" : "";
}

}  // namespace longwire::scheduler::testing
