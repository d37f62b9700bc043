#include "scheduler/core.h"

#include <algorithm>

namespace longwire::scheduler {

namespace {

Options InRange(Options options) {
  options.turn_length = std::clamp<Time>(options.turn_length, std::chrono::microseconds(100),
                                         std::chrono::minutes(1));
  options.drain_lengths = std::clamp(options.drain_lengths, 1U, 10'000U);
  options.max_wait = std::max(options.max_wait, Time{0});
  // Not nothing: with either at 0 a gang that makes nothing of its turns would have one after the
  // other, all at the same time.
  options.linger = std::max<Time>(options.linger, std::chrono::microseconds(10));
  options.least_charge = std::max<Time>(options.least_charge, std::chrono::microseconds(1));
  options.longest_gap = std::max(options.longest_gap, Time{0});
  options.window = std::max<Time>(options.window, std::chrono::seconds(1));
  return options;
}

}  // namespace

Core::Core(const Policy& policy, const Options& options)
    : options_(InRange(options)), registry_(options_), turns_(policy, options_, changes_) {}

std::vector<Decision> Core::On(Time now, const Event& event) {
  now_ = std::max(now_, now);
  turns_.Advance(now_);
  std::visit([this](const auto& what) { Handle(what); }, event);
  turns_.Settle();
  return changes_.Take();
}

void Core::Handle(const SessionOpened& event) {
  const SessionInfo& info = event.session;
  if (registry_.Find(info.id) != nullptr) return;
  SetTenant(Advised({info.tenant, info.priority_class, info.weight}, info.id, info.devices.size()));
  ScheduledSession& session = registry_.Open(info);
  for (Seat& seat : session.seats) {
    seat.reported_at = now_;
    turns_.Unsettle(*seat.device);
  }
  turns_.Reconsider(*session.gang);
}

void Core::Handle(const SessionClosed& event) {
  ScheduledSession* session = registry_.Find(event.session);
  if (session == nullptr) return;
  Gang& gang = *session->gang;
  if (Advice* advice = turns_.advice()) {
    const Tenant& tenant = *session->tenant;
    advice->OnClosed(now_,
                     {session->id, tenant.number, static_cast<uint32_t>(session->seats.size()),
                      tenant.priority_class, tenant.weight});
  }
  for (Seat& seat : session->seats) {
    turns_.OnActivity(seat, Activity::kIdle);
    turns_.Unsettle(*seat.device);
  }
  if (gang.sessions.size() == 1) turns_.Withdraw(gang);
  for (Seat& seat : session->seats) changes_.Forget(seat);
  if (registry_.Close(*session)) turns_.Reconsider(gang);
}

TenantChanged Core::Advised(const TenantChanged& configured, SessionId session,
                            size_t devices) const {
  Advice* advice = turns_.advice();
  if (advice == nullptr) return configured;
  SessionTerms terms{session, NumberOf(configured.tenant), static_cast<uint32_t>(devices),
                     configured.priority_class, std::clamp(configured.weight, 1U, kMaxWeight)};
  advice->OnOpened(now_, &terms);
  return {configured.tenant, terms.priority_class, terms.weight};
}

void Core::Handle(const TenantChanged& event) {
  const Tenant& tenant = registry_.OfName(event.tenant);
  if (tenant.sessions.empty()) return SetTenant(event);
  const ScheduledSession& newest = *tenant.sessions.rbegin()->second;
  SetTenant(Advised(event, newest.id, newest.seats.size()));
}

void Core::SetTenant(const TenantChanged& event) {
  Tenant& tenant = registry_.OfName(event.tenant);
  tenant.weight = std::clamp(event.weight, 1U, kMaxWeight);
  if (tenant.priority_class == event.priority_class) return;
  for (auto& [id, session] : tenant.sessions) {
    for (Seat& seat : session->seats) CountSeat(seat, -1);
  }
  tenant.priority_class = event.priority_class;
  for (auto& [id, session] : tenant.sessions) {
    for (Seat& seat : session->seats) {
      CountSeat(seat, 1);
      turns_.Unsettle(*seat.device);
    }
  }
  for (auto& [id, session] : tenant.sessions) turns_.Reconsider(*session->gang);
}

void Core::Handle(const ActivityReported& event) {
  Seat* seat = registry_.Find(event.session, event.device);
  if (seat == nullptr) return;
  // At most the time there was: a count that ran ahead is believed as time passes, one that runs
  // backwards not at all.
  const Time reported = std::max(event.gpu_time, seat->gpu_time);
  const Time used = std::min(reported - seat->gpu_time, now_ - seat->reported_at);
  if (used > Time{0}) {
    registry_.accounting().Add(now_, *seat->session->tenant->account, *seat->device->account, used);
  }
  turns_.OnUse(*seat, used);
  seat->gpu_time += used;
  seat->reported_at = now_;
  const bool busy = event.activity != Activity::kIdle;
  Advice* advice = turns_.advice();
  if (advice != nullptr && busy != (seat->activity != Activity::kIdle)) {
    advice->OnQueue(
        now_, {event.session, seat->session->tenant->number, event.device, busy, seat->gpu_time});
  }
  turns_.OnActivity(*seat, event.activity);
}

void Core::Handle(const LaunchGapObserved& event) {
  Seat* seat = registry_.Find(event.session, event.device);
  if (seat != nullptr) seat->gap = std::clamp(event.gap, Time{0}, options_.longest_gap);
}

void Core::Handle(const GangJoined& event) {
  ScheduledSession* first = registry_.Find(event.first);
  ScheduledSession* second = registry_.Find(event.second);
  if (first == nullptr || second == nullptr || first->tenant != second->tenant) return;
  Gang* into = first->gang;
  Gang* from = second->gang;
  if (into == from) return;
  if (into->sessions.size() < from->sessions.size()) std::swap(into, from);
  turns_.Merge(*into, *from);
  registry_.Merge(*into, *from);
  turns_.Reconsider(*into);
}

void Core::Handle(const SharingChanged& event) {
  options_ = InRange(event.options);
  turns_.SetPolicy(*event.policy);
  registry_.SetOptions(options_);
  for (const auto& [name, tenant] : registry_.tenants()) {
    for (const auto& [id, session] : tenant.sessions) {
      turns_.TakeOptions(*session->gang);
      for (Seat& seat : session->seats) turns_.Unsettle(*seat.device);
    }
  }
}

std::optional<TenantTerms> Core::TermsOf(const TenantName& name) const {
  const auto tenant = registry_.tenants().find(name);
  if (tenant == registry_.tenants().end() || tenant->second.sessions.empty()) return std::nullopt;
  return TenantTerms{tenant->second.priority_class, tenant->second.weight};
}

Snapshot Core::snapshot() const {
  Snapshot snapshot;
  const Accounting& accounting = registry_.accounting();
  for (const auto& [id, device] : registry_.devices()) {
    DeviceStatus& status = snapshot.devices.emplace_back();
    status.now = device.Snapshot();
    status.turns = device.regime.turns;
    status.waiting = static_cast<uint32_t>(device.queue.size() + device.wide.size());
    status.busy = accounting.Busy(now_, *device.account);
    if (device.holder == nullptr) continue;
    for (const ScheduledSession* session : device.holder->sessions)
      status.turn.push_back(session->id);
  }
  for (const auto& [name, tenant] : registry_.tenants()) {
    snapshot.tenants.push_back({name, tenant.priority_class, tenant.weight, tenant.account->total,
                                accounting.Share(now_, *tenant.account)});
    for (const auto& [id, session] : tenant.sessions) {
      for (const Seat& seat : session->seats) {
        snapshot.seats.push_back({seat.told.value_or(Decision{}), seat.activity, seat.gpu_time});
      }
    }
  }
  std::sort(snapshot.seats.begin(), snapshot.seats.end(), [](const auto& one, const auto& other) {
    return std::tie(one.decision.session, one.decision.device) <
           std::tie(other.decision.session, other.decision.device);
  });
  snapshot.counters = turns_.counters();
  return snapshot;
}

}  // namespace longwire::scheduler
