#include "scheduler/registry.h"

#include <algorithm>

namespace longwire::scheduler {

void Registry::SetOptions(const Options& options) {
  longest_gap_ = options.longest_gap;
  turn_length_ = options.turn_length;
  for (auto& [id, device] : devices_) device.queue.SetClaim(turn_length_);
}

Tenant& Registry::OfName(const TenantName& name) {
  auto [at, is_new] = tenants_.try_emplace(name);
  Tenant& tenant = at->second;
  if (is_new) {
    tenant.id = tenants_.size();
    tenant.name = name;
    tenant.number = NumberOf(name);
    tenant.account = &accounting_.OfTenant(name);
  }
  return tenant;
}

Device& Registry::OfNumber(DeviceId id) {
  auto [at, is_new] = devices_.try_emplace(id);
  if (is_new) {
    at->second.id = id;
    at->second.queue.SetClaim(turn_length_);
    at->second.account = &accounting_.OfDevice(id);
  }
  return at->second;
}

ScheduledSession* Registry::Find(SessionId id) {
  auto found = sessions_.find(id);
  return found == sessions_.end() ? nullptr : &found->second;
}

Seat* Registry::Find(SessionId id, DeviceId device) {
  ScheduledSession* session = Find(id);
  if (session == nullptr) return nullptr;
  for (Seat& seat : session->seats) {
    if (seat.device->id == device) return &seat;
  }
  return nullptr;
}

Gang& Registry::GangFor(Tenant& tenant, const std::string& name) {
  if (auto named = tenant.named_gangs.find(name); named != tenant.named_gangs.end()) {
    return *named->second;
  }
  const uint64_t id = ++gangs_made_;
  Gang& gang = gangs_[id];
  gang.id = id;
  gang.tenant = &tenant;
  if (!name.empty()) {
    gang.names.push_back(name);
    tenant.named_gangs[name] = &gang;
  }
  return gang;
}

ScheduledSession& Registry::Open(const SessionInfo& info) {
  Tenant& tenant = OfName(info.tenant);
  ScheduledSession& session = sessions_[info.id];
  session.id = info.id;
  session.tenant = &tenant;
  tenant.sessions[info.id] = &session;
  session.gang = &GangFor(tenant, info.gang);
  session.gang->sessions.push_back(&session);

  session.seats.reserve(info.devices.size());
  for (DeviceId id : info.devices) {
    if (Find(info.id, id) != nullptr) continue;  // named twice
    Seat& seat = session.seats.emplace_back();
    seat.session = &session;
    seat.device = &OfNumber(id);
    seat.gap = longest_gap_;
    seat.device->seats[info.id] = &seat;
    CountSeat(seat, 1);
  }
  return session;
}

bool Registry::Close(ScheduledSession& session) {
  for (Seat& seat : session.seats) {
    SetActivity(seat, Activity::kIdle);
    CountSeat(seat, -1);
    seat.device->seats.erase(session.id);
  }
  Tenant& tenant = *session.tenant;
  Gang& gang = *session.gang;
  tenant.sessions.erase(session.id);
  std::erase(gang.sessions, &session);
  sessions_.erase(session.id);
  if (!gang.sessions.empty()) return true;
  for (const std::string& name : gang.names) tenant.named_gangs.erase(name);
  gangs_.erase(gang.id);
  return false;
}

void Registry::Merge(Gang& into, Gang& from) {
  for (ScheduledSession* session : from.sessions) {
    session->gang = &into;
    into.sessions.push_back(session);
  }
  for (const std::string& name : from.names) {
    into.tenant->named_gangs[name] = &into;
    into.names.push_back(name);
  }
  into.queued += from.queued;
  into.running += from.running;
  gangs_.erase(from.id);
}

}  // namespace longwire::scheduler
