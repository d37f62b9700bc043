#include "server/daemon/sessions/figures.h"

#include <array>
#include <map>

#include "longwire/call_ids.h"
#include "server/daemon/sessions/terms.h"
#include "server/daemon/settings/safe_limits.h"

namespace longwire::daemon {
namespace {

double Seconds(std::chrono::nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

void FillSeat(const SeatFigures& figures, transport::Seat* seat) {
  seat->set_device(static_cast<int32_t>(figures.device));
  seat->set_closed(figures.closed);
  seat->set_limited(figures.limited);
  seat->set_busy(figures.busy);
  seat->set_gpu_seconds(Seconds(figures.gpu_time));
  seat->set_calls(figures.calls);
  seat->set_held(figures.held);
  seat->set_time_slice_groups(figures.time_slice_groups);
  seat->set_time_slice_microseconds(figures.time_slice);
  seat->set_stopped(!figures.answers);
}

void AddSeats(Scheduling& scheduling, transport::InspectReply* reply) {
  std::map<uint64_t, transport::Session*> sessions;
  for (transport::Session& session : *reply->mutable_sessions()) sessions[session.id()] = &session;
  std::map<uint32_t, uint32_t> per_device;
  for (const SeatFigures& seat : scheduling.Seats()) {
    ++per_device[seat.device];
    auto session = sessions.find(seat.session);
    if (session != sessions.end()) FillSeat(seat, session->second->add_seats());
  }
  std::map<uint32_t, double> busy = scheduling.BusyDevices();
  for (transport::Device& device : *reply->mutable_devices()) {
    auto number = static_cast<uint32_t>(device.ordinal());
    device.set_sessions(per_device[number]);
    device.set_busy(busy[number]);
  }
}

void AddAwake(AwakeCores& awake_cores, transport::InspectReply* reply) {
  std::map<uint64_t, AwakeFigures> sessions = awake_cores.Sessions();
  for (transport::Session& session : *reply->mutable_sessions()) {
    const AwakeFigures& figures = sessions[session.id()];
    session.set_awake_microseconds(static_cast<uint64_t>(figures.wanted.count()) / 1000);
    session.set_awake_granted(figures.granted);
    session.set_awake_seconds(Seconds(figures.spent));
  }
  auto spent = awake_cores.Spent();
  for (transport::TenantFigures& tenant : *reply->mutable_tenants()) {
    tenant.set_awake_seconds(Seconds(spent[tenant.name()]));
  }
  reply->mutable_scheduler()->set_awake_cores(awake_cores.cores());
  reply->mutable_scheduler()->set_awake_cores_in_use(awake_cores.cores_in_use());
}

using TermsByTenant = std::map<std::string, scheduler::TenantTerms>;

// The terms in force: of tenants without sessions those that are configured.
void FillTerms(const TermsByTenant& in_force, const config::Tenant& tenant,
               transport::TenantFigures* figures) {
  scheduler::TenantTerms terms = ConfiguredTerms(tenant);
  const auto known = in_force.find(tenant.name());
  if (known != in_force.end()) terms = known->second;
  const bool critical = terms.priority_class == scheduler::PriorityClass::kLatencyCritical;
  const auto awake = critical ? AwakeOf(tenant) : std::chrono::nanoseconds(0);
  figures->set_latency_critical(critical);
  figures->set_weight(terms.weight);
  figures->set_awake_microseconds(static_cast<uint64_t>(awake.count()) / 1000);
}

void FillTenant(SessionTable& table, const config::Tenant& tenant, const warden::Stats* stats,
                std::chrono::nanoseconds time, uint32_t sessions,
                transport::TenantFigures* figures) {
  figures->set_name(tenant.name());
  figures->set_sessions(sessions);
  figures->set_memory_limit(MemoryLimitOf(*table.config(), tenant, table.lendable()));
  figures->set_memory_reserved(tenant.memory_reserved());
  figures->set_gpu_seconds(Seconds(time));
  figures->set_host_memory(table.host_memory().Used(tenant.name()));
  figures->set_host_memory_limit(HostMemoryOf(tenant));
  figures->set_session_host_memory_limit(HostMemoryTermsOf(tenant).session_limit);
  for (size_t i = 0; stats != nullptr && i < stats->tenants.size(); ++i) {
    const warden::TenantStats& ledger = stats->tenants[i];
    if (ledger.tenant == tenant.name()) figures->set_memory_leased(ledger.leased);
  }
}

void FillLatencies(const gates::AllLatencies& all, transport::TenantFigures* figures) {
  constexpr std::array kNames = {"round_trip", "launch_queueing", "launch_to_start"};
  static_assert(kNames.size() == gates::kLatencies);
  for (size_t i = 0; i < all.size(); ++i) {
    transport::Latency* latency = figures->add_latencies();
    latency->set_of(kNames[i]);
    for (uint64_t bound : gates::kLatencyBounds) {
      latency->add_bounds(Seconds(std::chrono::nanoseconds(bound)));
    }
    for (uint64_t count : all[i].counts) latency->add_counts(count);
    latency->set_seconds(static_cast<double>(all[i].nanoseconds) / 1e9);
  }
}

void AddTenants(SessionTable& table, const warden::Stats* stats, const Peer& peer,
                transport::InspectReply* reply) {
  // The configured ones, and those of sessions that run on under an older configuration.
  config::LiveConfig::Snapshot config = table.config();
  std::map<std::string, config::Tenant> tenants;
  std::map<std::string, uint32_t> sessions;
  for (const auto& session : table.List()) {
    const config::Tenant& tenant = *session->client().peer.tenant;
    tenants[tenant.name()] = tenant;
    ++sessions[tenant.name()];
  }
  for (const config::Tenant& tenant : config->tenants()) tenants[tenant.name()] = tenant;
  std::map<std::string, uint64_t> charged;
  for (const transport::Session& session : reply->sessions()) {
    for (const auto& memory : session.memory()) charged[session.tenant()] += memory.charged();
  }
  const TermsByTenant terms = table.scheduling().Terms();
  auto times = table.scheduling().GpuTimes();
  auto shares = table.scheduling().Shares();
  auto latencies = table.scheduling().Latencies();
  for (const auto& [name, tenant] : tenants) {
    if (!peer.MaySee(tenant)) continue;
    transport::TenantFigures* figures = reply->add_tenants();
    FillTenant(table, tenant, stats, times[name], sessions[name], figures);
    FillTerms(terms, tenant, figures);
    figures->set_memory_charged(charged[name]);
    FillLatencies(latencies[name], figures);
    figures->set_share_due(shares[name].due);
    figures->set_share_had(shares[name].had);
  }
}

void AddIdentities(SessionTable& table, transport::InspectReply* reply) {
  std::map<IdentityFigures::Key, transport::IdentityFigures> all;
  for (const auto& [key, counts] : table.identities().Get()) {
    transport::IdentityFigures& figures = all[key];
    figures.set_opened(counts.opened);
    figures.set_refused(counts.refused);
    figures.set_bytes_up(counts.bytes_up);
    figures.set_bytes_down(counts.bytes_down);
    figures.set_session_seconds(counts.seconds);
  }
  std::map<uint64_t, uint64_t> leased;
  for (const transport::Session& session : reply->sessions())
    leased[session.id()] = session.leased();
  for (const auto& session : table.List()) {
    transport::IdentityFigures& figures = all[table.identities().KeyOf(session->client().peer)];
    auto age = std::chrono::duration<double>(Clock::now() - session->opened());
    figures.set_sessions(figures.sessions() + 1);
    figures.set_memory_leased(figures.memory_leased() + leased[session->id()]);
    figures.set_bytes_up(figures.bytes_up() + session->bytes_up());
    figures.set_bytes_down(figures.bytes_down() + session->bytes_down());
    figures.set_session_seconds(figures.session_seconds() + age.count());
  }
  for (auto& [key, figures] : all) {
    figures.set_tenant(key.first);
    figures.set_identity(key.second);
    *reply->add_identities() = std::move(figures);
  }
}

void AddLatencies(SessionTable& table, transport::InspectReply* reply) {
  const OpeningTimes::Figures times = table.opening_times().Get();
  transport::Latency* latency = reply->add_latencies();
  latency->set_of("session opening");
  latency->mutable_bounds()->Add(OpeningTimes::kBounds.begin(), OpeningTimes::kBounds.end());
  latency->mutable_counts()->Add(times.counts.begin(), times.counts.end());
}

// Also of the tenant of those whom no tenant lists, if there are none.
void AddUnsetLimits(SessionTable& table, const Peer& peer, transport::InspectReply* reply) {
  config::LiveConfig::Snapshot config = table.config();
  auto add = [&](const config::Tenant& tenant) {
    if (!peer.MaySee(tenant)) return;
    for (const std::string& sentence : UnsetLimits(*config, tenant)) {
      reply->mutable_daemon()->add_unset_limits(sentence);
    }
  };
  for (const config::Tenant& tenant : config->tenants()) add(tenant);
  if (config->tenants_size() == 0) add(*FindTenant(config, ""));
  for (const std::string& sentence : UnsetLimits(*config)) {
    reply->mutable_daemon()->add_unset_limits(sentence);
  }
}

void AddCalls(Scheduling& scheduling, transport::InspectReply* reply) {
  std::vector<uint64_t> counts = scheduling.CallCounts();
  for (size_t number = 0; number < counts.size(); ++number) {
    auto id = static_cast<CallId>(number);
    const char* name = counts[number] == 0 ? nullptr : CallName(id);
    if (name == nullptr) continue;
    transport::CallCount* call = reply->add_calls();
    call->set_name(name);
    call->set_count(counts[number]);
    call->set_round_trip(CallKind(id) == CallKindValue::kAfterReply);
  }
}

}  // namespace

void AddFigures(SessionTable& table, const warden::Stats* stats, const Peer& peer,
                transport::InspectReply* reply) {
  AddSeats(table.scheduling(), reply);
  AddTenants(table, stats, peer, reply);
  AddAwake(table.awake_cores(), reply);
  transport::SchedulerFigures* scheduler = reply->mutable_scheduler();
  SchedulingOptions options = table.scheduling().options();
  scheduler::Counters counters = table.scheduling().counters();
  scheduler->set_enabled(options.enabled);
  scheduler->set_policy(options.policy);
  scheduler->set_turns(counters.turns);
  scheduler->set_overruns(counters.overruns);
  scheduler->set_forced(counters.forced);
  AddUnsetLimits(table, peer, reply);
  if (!peer.SeesAll()) return;
  AddCalls(table.scheduling(), reply);
  AddIdentities(table, reply);
  AddLatencies(table, reply);
}

}  // namespace longwire::daemon
