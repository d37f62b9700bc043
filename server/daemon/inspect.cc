#include "server/daemon/inspect.h"

#include <unistd.h>

#include <map>
#include <numeric>
#include <set>

#include "base/uuid_text.h"
#include "link/transport/log.h"
#include "server/config/config.h"
#include "server/daemon/sessions/figures.h"
#include "server/daemon/sessions/health.h"
#include "server/daemon/sessions/recording.h"
#include "server/daemon/sessions/view.h"
#include "server/daemon/statistics/describe.h"
#include "server/daemon/unary_call.h"

namespace longwire::daemon {
namespace {

using transport::Log;
using transport::LogLevel;

const Clock::time_point g_started = Clock::now();

double SecondsSince(Clock::time_point time) {
  return std::chrono::duration<double>(Clock::now() - time).count();
}

void FillDaemon(SessionTable& table, transport::Daemon* daemon) {
  char host[256] = {};
  gethostname(host, sizeof(host) - 1);
  daemon->set_version(LONGWIRE_VERSION);
  daemon->set_protocol(wire::SpokenVersions().oldest);
  daemon->set_newest_protocol(wire::SpokenVersions().newest);
  daemon->set_host(host);
  daemon->set_pid(static_cast<uint32_t>(getpid()));
  daemon->set_uptime_seconds(SecondsSince(g_started));
  daemon->set_driver(table.config()->driver());
  daemon->set_sessions_opened(table.opened());
  daemon->set_sessions_failed(table.failed());
  daemon->set_draining(table.draining());
}

// Of all tenants together: who could watch the number of images while uploading would learn what
// others have.
void FillModuleCache(SessionTable& table, transport::ModuleCache* cache) {
  images::Figures images = table.images().figures();
  cache->set_images(images.images);
  cache->set_bytes(images.bytes);
  cache->set_limit(images.limit);
  cache->set_hits(images.hits);
  cache->set_misses(images.misses);
  cache->set_saved(images.saved);
  cache->set_evicted(images.evicted);
  cache->set_damaged(images.damaged);
  cache->set_kept(images.kept);
}

void FillAdmission(SessionTable& table, transport::Admission* admission) {
  admission::Entrance::Figures figures = table.entrance().figures();
  admission->set_connections(static_cast<uint32_t>(figures.connections));
  admission->set_streams(static_cast<uint32_t>(figures.streams));
  admission->set_waiting_limit(static_cast<uint32_t>(figures.waiting_limit));
  admission->set_closed(figures.closed);
  admission->set_refused_streams(figures.refused_streams);
  admission->set_refused_calls(figures.refused_calls);
  admission->set_refused_rate(figures.refused_rate);
  admission->set_refused_limit(figures.refused_limit);
  admission->set_descriptors(static_cast<uint32_t>(figures.descriptors.limit));
  admission->set_session_descriptors(static_cast<uint32_t>(figures.descriptors.sessions));
  admission->set_held_descriptors(static_cast<uint32_t>(figures.held_descriptors));
  admission->set_log_lines_left_out(transport::LogLinesLeftOut());
}

void FillDevice(const warden::DeviceStats& stats, transport::Device* device) {
  device->set_ordinal(stats.device);
  device->set_name(stats.name);
  device->set_uuid(base::UuidText(stats.facts.uuid));
  device->set_total(stats.total);
  device->set_lendable(stats.lendable);
  device->set_leased(stats.leased);
  device->set_leased_peak(stats.leased_peak);
  device->set_idle(stats.idle);
  device->set_keeper_pid(stats.keeper_pid);
  device->set_scrub_pending(stats.scrub_pending);
  device->set_refused(stats.refused);
  device->set_asked(stats.asked);
  device->set_drained(stats.drained);
  device->set_returned(stats.returned);
  device->set_remaps(stats.remaps);
  device->set_remapped(stats.remapped);
  device->set_swapped(stats.swapped);
  device->set_swap_host_memory(stats.swap_host_memory);
  device->set_swapped_out(stats.swapped_out);
  device->set_swapped_in(stats.swapped_in);
  for (const keeper::ChunkSize& size : stats.chunk_sizes) {
    transport::ChunkSize* out = device->add_chunk_sizes();
    out->set_bytes(size.bytes);
    out->set_leased(size.leased);
    out->set_idle(size.idle);
  }
}

void FillEvent(const keeper::MemoryEvent& event, const std::set<uint64_t>& seen,
               transport::MemoryEvent* out) {
  static constexpr const char* kKinds[] = {
      "",    "lease", "return", "end",   "refuse",  "ask",      "drain",   "unused",
      "map", "unmap", "remap",  "clear", "release", "swap-out", "swap-in", "fill"};
  out->set_number(event.number);
  out->set_seconds(static_cast<double>(event.time) / 1e6);
  if (event.kind < std::size(kKinds)) out->set_kind(kKinds[event.kind]);
  if (seen.contains(event.worker)) out->set_session(event.worker);
  out->set_bytes(event.bytes);
}

// What the warden says of each session: with a thousand, looking through all for each takes long.
struct OfSessions {
  // `stats`, if there are any, outlive this.
  explicit OfSessions(const std::optional<warden::Stats>& stats) {
    if (!stats) return;
    for (const warden::SessionStats& seat : stats->sessions) seats[seat.session].push_back(&seat);
    if (!stats->charges) return;
    for (const warden::SessionCharge& charge : stats->charges->sessions) {
      charged[{charge.session, charge.device}] += charge.charged;
    }
    if (!stats->promises) return;
    for (const warden::SessionPromise& promise : stats->promises->sessions) {
      promised[{promise.session, promise.device}] = promise.bytes;
    }
  }

  std::map<uint64_t, std::vector<const warden::SessionStats*>> seats;
  std::map<std::pair<uint64_t, int32_t>, uint64_t> charged, promised;  // by session and device
};

void FillPromises(OfSessions& of_sessions, transport::InspectReply* reply) {
  std::map<int32_t, std::pair<uint64_t, uint64_t>> sums;  // promised, unused
  for (const auto& [place, bytes] : of_sessions.promised) {
    uint64_t used = of_sessions.charged[place];
    for (const warden::SessionStats* seat : of_sessions.seats[place.first]) {
      if (seat->device == place.second) used += seat->leased;
    }
    sums[place.second].first += bytes;
    sums[place.second].second += bytes - std::min(bytes, used);
  }
  for (transport::Device& device : *reply->mutable_devices()) {
    device.set_promised(sums[device.ordinal()].first);
    device.set_promised_unused(sums[device.ordinal()].second);
  }
}

void FillCharges(const warden::Stats& stats, transport::InspectReply* reply) {
  if (!stats.charges) return;
  for (const warden::DeviceCharge& charge : stats.charges->devices) {
    for (transport::Device& device : *reply->mutable_devices()) {
      if (device.ordinal() != charge.device) continue;
      device.set_charged(charge.charged);
      device.set_others(charge.others);
    }
  }
}

// The one that the session began with, or its successor.
int32_t PresentKeeper(const warden::KeeperProcess& first, const warden::Stats* stats) {
  if (stats == nullptr) return first.pid;
  for (const warden::DeviceStats& device : stats->devices) {
    if (device.device == first.device && device.keeper_pid != 0) return device.keeper_pid;
  }
  return first.pid;
}

void FillSum(const gates::LatencyCounts& counts, transport::TimeSum* sum) {
  sum->set_count(std::accumulate(counts.counts.begin(), counts.counts.end(), uint64_t{0}));
  sum->set_seconds(static_cast<double>(counts.nanoseconds) / 1e9);
}

void FillSession(ServerSession& session, const warden::Stats* stats, OfSessions& of_sessions,
                 gates::HostMemoryTable& host_memory, transport::Session* out) {
  const ClientDescription& client = session.client();
  out->set_id(session.id());
  out->set_program(client.program);
  out->set_program_id(client.program_id);
  out->set_moves(session.moves());
  out->set_client_host(client.host);
  out->set_client_pid(client.pid);
  out->set_peer(client.peer.address);
  out->set_tenant(client.peer.tenant->name());
  out->set_identity(client.peer.identity);
  out->set_worker_pid(session.worker().pid);
  for (const warden::KeeperProcess& keeper : session.worker().keepers) {
    out->add_keeper_pids(PresentKeeper(keeper, stats));
  }
  out->set_seconds(SecondsSince(session.opened()));
  out->set_bytes_up(session.bytes_up());
  out->set_bytes_saved(session.bytes_saved());
  out->set_bytes_down(session.bytes_down());
  out->set_messages_up(session.messages_up());
  out->set_messages_down(session.messages_down());
  out->set_warm(session.worker().warm);
  out->set_local(client.local());
  out->set_epoch(session.epoch());
  uint64_t round_trips = 0;
  if (session.gates() != nullptr) {
    const gates::GatePage& page = *session.gates();
    out->set_calls(CallsOf(*session.gates(), &round_trips));
    FillSum(page.Counts(gates::Latency::kQueueing), out->mutable_launch_queueing());
    FillSum(page.Counts(gates::Latency::kLaunchToStart), out->mutable_launch_to_start());
  }
  out->set_round_trips(round_trips);
  uint64_t leased = 0;
  for (const warden::SessionStats* seat : of_sessions.seats[session.id()]) {
    leased += seat->leased;
    transport::SessionMemory* memory = out->add_memory();
    memory->set_device(seat->device);
    memory->set_leased(seat->leased);
    memory->set_leased_peak(seat->leased_peak);
    memory->set_idle(seat->idle);
    memory->set_swapped(seat->swapped);
    memory->set_charged(of_sessions.charged[{session.id(), seat->device}]);
    memory->set_promised(of_sessions.promised[{session.id(), seat->device}]);
  }
  out->set_leased(leased);
  out->set_host_memory(host_memory.UsedBy(session.id()));
}

void AddEnded(const SessionTable& table, const Peer& peer, transport::InspectReply* reply) {
  for (const UsageRecord& record : table.RecentlyEnded()) {
    if (!peer.SeesAll() && record.tenant != peer.tenant->name()) continue;
    transport::EndedSession* ended = reply->add_ended();
    ended->set_id(record.session);
    ended->set_identity(record.identity);
    ended->set_tenant(record.tenant);
    ended->set_program(record.program);
    ended->set_reason(ReasonOf(record));
  }
}

void AddSuspended(SessionTable& table, const Peer& peer, transport::InspectReply* reply) {
  const auto grace = config::CheckpointGrace(*table.config());
  for (const Ticket& ticket : table.suspended().List()) {
    if (!peer.SeesAll() && ticket.tenant != peer.tenant->name()) continue;
    transport::SuspendedSession* one = reply->add_suspended();
    one->set_id(ticket.session());
    one->set_identity(ticket.identity);
    one->set_tenant(ticket.tenant);
    one->set_program(ticket.program);
    one->set_file(ticket.file);
    one->set_bytes(ticket.bytes);
    one->set_device(ticket.device);
    one->set_seconds_left(std::chrono::duration<double>(RestOf(ticket, grace)).count());
  }
}

}  // namespace

transport::InspectReply Inspect(SessionTable& table, const Peer& peer) {
  transport::InspectReply reply;
  FillDaemon(table, reply.mutable_daemon());
  if (peer.SeesAll() || table.config()->tenants_size() == 0) {
    FillModuleCache(table, reply.mutable_daemon()->mutable_module_cache());
    FillAdmission(table, reply.mutable_daemon()->mutable_admission());
  }
  std::string problem;
  std::optional<warden::Stats> stats = table.warden().GetStats(&problem);
  if (stats) {
    reply.mutable_daemon()->set_driver(stats->driver);
    if (auto walls = table.warden().GetWalls()) {
      reply.mutable_daemon()->set_walls(walls->standing);
      reply.mutable_daemon()->set_walls_missing(walls->missing);
    }
    const std::set<int32_t> cordoned = table.placements().Cordoned();
    for (const auto& device : stats->devices) {
      FillDevice(device, reply.add_devices());
      reply.mutable_devices()->rbegin()->set_cordoned(cordoned.contains(device.device));
    }
    FillCharges(*stats, &reply);
    AddHealth(*stats, &reply);
  } else {
    reply.mutable_daemon()->set_warden_problem(problem);
  }
  OfSessions of_sessions(stats);
  FillPromises(of_sessions, &reply);
  for (const auto& session : table.List()) {
    if (!peer.MaySee(*session->client().peer.tenant)) continue;
    FillSession(*session, stats ? &*stats : nullptr, of_sessions, table.host_memory(),
                reply.add_sessions());
  }
  AddEnded(table, peer, &reply);
  AddSuspended(table, peer, &reply);
  AddFigures(table, stats ? &*stats : nullptr, peer, &reply);
  reply.set_policies_left_out(!peer.SeesAll());
  reply.set_other_tenants_left_out(!peer.SeesAll() && table.config()->tenants_size() != 0);
  return reply;
}

namespace {

// Sessions are named if the caller sees them: those are in the reply.
void AddMemoryEvents(SessionTable& table, const transport::InspectRequest& request,
                     transport::InspectReply* reply) {
  std::set<uint64_t> seen;
  for (const transport::Session& session : reply->sessions()) seen.insert(session.id());
  for (const transport::Device& device : reply->devices()) {
    uint64_t after = 0;
    for (const transport::MemoryCursor& cursor : request.events_after()) {
      if (cursor.device() == device.ordinal()) after = cursor.number();
    }
    transport::MemoryEvents* events = reply->add_memory_events();
    events->set_device(device.ordinal());
    for (const auto& event : table.warden().GetEvents(device.ordinal(), after)) {
      FillEvent(event, seen, events->add_events());
    }
  }
}

}  // namespace

// Tenants of the configuration: their numbers are keys of maps.
void AddPolicies(SessionTable& table, const transport::InspectRequest& request,
                 transport::InspectReply* reply) {
  std::vector<std::string> tenants = {"default"};
  for (const config::Tenant& tenant : table.config()->tenants()) tenants.push_back(tenant.name());
  table.policies().Describe(request.policy_values(), tenants, reply);
}

transport::InspectReply InspectAll(SessionTable& table, const transport::InspectRequest& request) {
  static const auto administrator = [] {
    auto tenant = std::make_shared<config::Tenant>();
    tenant->set_admin(true);
    return tenant;
  }();
  Peer peer;
  peer.tenant = administrator;
  transport::InspectReply reply = Inspect(table, peer);
  if (request.memory_events()) AddMemoryEvents(table, request, &reply);
  AddPolicies(table, request, &reply);
  if (request.programs()) AddPrograms(table, peer, &reply);
  if (!request.rules_of().empty()) AddRules(table, peer, request.rules_of(), &reply);
  return reply;
}

namespace {

class InspectCall final : public UnaryCall<transport::InspectRequest, transport::InspectReply> {
 public:
  explicit InspectCall(AcceptLoop& loop)
      : UnaryCall(loop, &Service::RequestInspect, AcceptInspect) {}

 private:
  void Handle(const Peer& peer) override {
    if (peer.refused()) {
      Log(LogLevel::kWarning, peer.subject(),
          "a call from " + peer.address + " was refused: " + peer.refusal);
      return Refuse(grpc::StatusCode::PERMISSION_DENIED, peer.refusal);
    }
    SessionTable& table = loop().table();
    transport::InspectReply reply;
    if (!request().view().empty()) {
      auto view = EncodedView(table, peer, std::as_bytes(std::span(request().view())));
      reply.set_view(view.data(), view.size());
    } else {
      reply = Inspect(table, peer);
      if (request().memory_events()) AddMemoryEvents(table, request(), &reply);
      if (peer.SeesAll()) AddPolicies(table, request(), &reply);
      if (request().programs()) AddPrograms(table, peer, &reply);
      if (!request().rules_of().empty()) {
        AddRules(table, peer, request().rules_of(), &reply);
      }
      const bool all = peer.tenant->admin() || table.config()->tenants_size() == 0;
      InspectWithdrawal(loop().pool(), all, &reply);
      if (request().pool()) InspectPool(loop().pool(), all, peer.tenant->name(), &reply);
    }
    Finish(reply);
  }
};

}  // namespace

void AcceptInspect(AcceptLoop& loop) { std::make_shared<InspectCall>(loop)->Accept(); }

}  // namespace longwire::daemon
