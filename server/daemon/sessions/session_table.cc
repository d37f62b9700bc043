#include "server/daemon/sessions/session_table.h"

#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/printable.h"
#include "base/reason.h"
#include "link/transport/codes.h"
#include "link/transport/log.h"
#include "server/daemon/pool/requirements.h"
#include "server/daemon/sessions/terms.h"
#include "server/daemon/sessions/warden_check.h"

namespace longwire::daemon {
namespace {

using transport::Log;
using transport::LogLevel;

// Short for people, and not those of an earlier daemon, whose workers may still be ending.
uint64_t FirstId() {
  uint32_t random = 0;
  if (getrandom(&random, sizeof(random), 0) != sizeof(random)) random = getpid();
  return uint64_t{1} + random % 1'000'000 * 1000;
}

std::string HostName() {
  char host[256] = {};
  return gethostname(host, sizeof(host) - 1) == 0 ? host : "";
}

// Only variables that the driver reads: no text of a client reaches a loader or a shell.
std::vector<std::string> DriverVariables(const std::vector<std::string>& given) {
  std::vector<std::string> kept;
  for (const std::string& variable : given) {
    const bool is_whole = variable.find('\0') == std::string::npos;
    if (is_whole && variable.starts_with("CUDA_")) kept.push_back(variable);
  }
  return kept;
}

size_t DescriptorsOf(const wire::OpenRequest& request, const Peer& peer) {
  return admission::DescriptorsOfSession(std::min(request.lanes, wire::kMaxLanes),
                                         peer.uid.has_value());
}

// The versions that client, link and this server share; nullopt with a sentence.
std::optional<wire::VersionRange> Agree(wire::VersionRange client, wire::VersionRange link,
                                        std::string* sentence) {
  const wire::Speaker server{"this server", wire::kUpgradeServer, wire::SpokenVersions()};
  const wire::Speaker program{"the client", wire::kUpgradeClient, client};
  const wire::Speaker carrier{"longwire-link on the client's host", wire::kUpgradeClient, link};
  for (const wire::Speaker* far : {&program, &carrier}) {
    if (wire::Common(far->versions, server.versions)) continue;
    *sentence = wire::RefusalOf(*far, server);
    return std::nullopt;
  }
  auto both = wire::Common(*wire::Common(client, server.versions), link);
  if (!both) *sentence = wire::RefusalOf(carrier, program);
  return both;
}

void LogOpened(const ServerSession& session, uint32_t protocol) {
  const ClientDescription& client = session.client();
  const warden::WorkerStarted& worker = session.worker();
  Log(LogLevel::kInfo, session.subject(),
      "opened for " + client.program + " (pid " + std::to_string(client.pid) + " on " +
          client.host + ", from " + client.peer.address + ", '" + client.peer.identity +
          "' of tenant '" + client.peer.tenant->name() + "'), worker " +
          std::to_string(worker.pid) + (worker.warm ? " (warm)" : "") + ", protocol " +
          std::to_string(protocol));
}

// A worker that opened the session in a version that was not among those given to it.
void CheckChoice(wire::VersionRange given, wire::OpenReply* reply) {
  if (reply->code != 0 || given.Has(reply->protocol)) return;
  reply->code = transport::kSystemDriverMismatch;
  reply->sentence = wire::RefusalOf({"longwired, for this client,", "longwired", given},
                                    {"longwire-worker", "longwire-worker", reply->versions});
}

}  // namespace

SessionTable::SessionTable(const config::LiveConfig& live)
    : live_(live),
      next_id_(FirstId()),
      awake_cores_(live.Get()->scheduler().awake_cores()),
      statistics_(config::KernelHistory(*live.Get())),
      images_(
          ImageStoreOptionsOf(*live.Get()),
          [this](uint64_t session, const std::string& tenant, const links::Token& token) {
            auto other = linked_sessions_.Said(session, tenant, token);
            if (other) scheduling_->Join(*other, session);
          },
          [this](uint64_t session, const bridges::Ask& ask) { AskAboutBridges(session, ask); }),
      entrance_(live) {
  WardenClient::Events events;
  events.worker_died = [this](const warden::WorkerDied& died) { OnWorkerDied(died); };
  events.warden_lost = [this] {
    usage_->WardenLost();
    if (List().empty()) return Log(LogLevel::kInfo, "longwire-warden ended; there was no session");
    Log(LogLevel::kError, "longwire-warden went away, and all workers with it");
    EndAll({static_cast<uint32_t>(transport::kLaunchFailed), "the server's warden ended"});
  };
  const config::Usage& usage = live_.Get()->usage();
  usage_ = std::make_unique<UsageLog>(usage.file() == "none" ? "" : usage.file(), usage.size(),
                                      UsageSource());
  auto starter = [this](std::string* sentence) { return StartWarden(*live_.Get(), sentence); };
  warden_ = std::make_unique<WardenClient>(live_.Get()->warden(), starter, events);
  scheduling_ =
      std::make_unique<Scheduling>(SchedulingOptionsOf(*live_.Get()), [this] { TellTerms(); });
  MakePolicies();
}

SessionTable::~SessionTable() {
  launch_policy_->Stop();
  Leave();
  if (reaper_.joinable()) reaper_.join();
  if (settler_.joinable()) settler_.join();
  DropArrivals();
  usage_->Stop();
  statistics_.Stop();
  scheduling_->Stop();  // it tells warden_
  warden_.reset();
}

bool SessionTable::Start(std::string* sentence) {
  bool silent = false;
  if (!warden_->Connect(sentence, &silent)) {
    if (!silent) return false;
    Log(LogLevel::kWarning, *sentence);  // it may answer later
  }
  RepeatTerms();
  usage_->Start();
  std::string unkept;
  if (!statistics_.Start(&unkept)) Log(LogLevel::kWarning, unkept);
  TakeOver();
  auto stats = warden_->GetStats(sentence);
  std::string difference = stats ? DifferenceOf(*live_.Get(), *stats) : "";
  if (!difference.empty()) Log(LogLevel::kWarning, difference);
  if (stats) NoteDevices(*stats);
  ApplyTenants(*live_.Get(), *scheduling_, awake_cores_, *warden_, lendable());
  reaper_ = std::thread([this] { ReapLoop(); });
  settler_ = std::thread([this] { SettleLoop(); });
  return true;
}

void SessionTable::NoteDevices(const warden::Stats& stats) {
  uint64_t sum = 0;
  for (const warden::DeviceStats& device : stats.devices) sum += device.lendable;
  lendable_.store(sum);
}

std::shared_ptr<ServerSession> SessionTable::StartSession(const wire::OpenRequest& request,
                                                          const Peer& peer, bool want_warm,
                                                          PlacedSession* placed,
                                                          OpeningRefusal* refusal) {
  uint64_t id = next_id_.fetch_add(1);
  while (Find(id) != nullptr) id = next_id_.fetch_add(1);  // of an earlier daemon
  warden::StartWorker start;
  start.session = id;
  *refusal = {transport::kDeviceUnavailable, RefusalReason::kNoDevice, ""};
  Requirements told;
  (void)ReadRequirements(request.environment, &told, &refusal->sentence);  // ChooseDevices refuses
  const uint64_t declared = DeclaredBytes(told, placed);
  start.devices = ChooseDevices(id, *peer.tenant, request.environment, placed, &refusal->sentence);
  if (start.devices.empty()) return nullptr;
  refusal->reason = RefusalReason::kWorker;
  if (declared != 0) start.promised = declared;
  if (placed != nullptr && placed->instead_of != 0) {
    start.promised = declared;
    start.instead_of = placed->instead_of;
  }
  usage_->Opened(id, start.devices, UtcNow());
  start.want_warm = want_warm;
  start.environment = DriverVariables(request.environment);
  start.tenant = peer.tenant->name();
  warden_->SetQuota(QuotaOf(*live_.Get(), *peer.tenant, lendable()));
  RepeatTerms();
  StartedWorker worker = warden_->Start(std::move(start));
  if (worker.started.code != 0) {
    refusal->code = worker.started.code;
    refusal->sentence = worker.started.sentence;
    if (refusal->code == transport::kDeviceUnavailable) refusal->reason = RefusalReason::kNoDevice;
    placements_.Forget(id);
    usage_->Forget(id);
    return nullptr;
  }
  ClientDescription client{
      base::Printable(request.program),
      base::Printable(request.host),
      request.pid,
      peer,
      DescriptorsOf(request, peer),
      placed == nullptr ? "" : placed->number,
      placed == nullptr ? declared : placed->bytes,
      placed != nullptr && placed->time_left != 0 ? placed->time_left : told.time_limit,
      told.program_id,
      placed != nullptr && placed->alone};
  auto session = std::make_shared<ServerSession>(id, std::move(client), std::move(worker));
  std::vector<scheduler::DeviceId> devices;
  for (const warden::KeeperProcess& keeper : session->worker().keepers) {
    devices.push_back(static_cast<scheduler::DeviceId>(keeper.device));
  }
  auto page = scheduling_->Open(SchedulerSession(id, *peer.tenant, std::move(devices)));
  refusal->sentence = "its limits cannot be shared with the worker: " + base::Reason(errno);
  if (page != nullptr) {
    page->bytes_in_flight() = peer.tenant->bytes_in_flight();
    // Only programs of this host can share the worker's rings.
    page->segment_bytes() = session->client().local() ? peer.tenant->pinned_memory() : 0;
    session->SetGates(page);
    const bool prepared = placed != nullptr && placed->instead_of != 0;
    GiveRules(*session, *page, prepared);
    if (session->MapRings()) {
      MayStayAwake(*session, std::move(page));
      return session;
    }
    refusal->sentence = "the worker's rings cannot be mapped: " + base::Reason(errno);
  }
  Abandon(id);
  return nullptr;
}

std::vector<int32_t> SessionTable::ChooseDevices(uint64_t id, const config::Tenant& tenant,
                                                 const std::vector<std::string>& environment,
                                                 PlacedSession* placed, std::string* sentence) {
  auto stats = warden_->GetStatsToOpen(sentence);
  if (!stats) return {};
  NoteDevices(*stats);
  if (placed != nullptr) {
    if (placed->devices.empty()) {
      return placements_.Place(id, 1, live_.Get()->placement(), *stats, scheduling_->BusyDevices(),
                               sentence, placed->bytes);
    }
    placed->tried.push_back(id);
    const bool room =
        placements_.PlaceAt(id, placed->devices, placed->bytes, *stats, sentence, placed->kept_by);
    return room ? placed->devices : std::vector<int32_t>();
  }
  DevicesWish wish = WishOf(tenant, environment, stats->devices.size());
  *sentence = wish.refusal;
  Requirements told;
  if (wish.devices == 0 || !ReadRequirements(environment, &told, sentence)) return {};
  *sentence =
      "the program asks for labels (--label, LONGWIRE_LABELS); they are for servers in a "
      "pool, which this one is not in";
  if (!told.labels.empty()) return {};
  return placements_.Place(id, wish.devices, live_.Get()->placement(), *stats,
                           scheduling_->BusyDevices(), sentence, told.bytes);
}

std::vector<int32_t> SessionTable::ForecastDevices(const config::Tenant& tenant,
                                                   const std::vector<std::string>& environment,
                                                   const warden::Stats& stats,
                                                   std::string* sentence) {
  DevicesWish wish = WishOf(tenant, environment, stats.devices.size());
  *sentence = wish.refusal;
  if (wish.devices == 0) return {};
  return placements_.Forecast(wish.devices, live_.Get()->placement(), stats,
                              scheduling_->BusyDevices(), sentence);
}

void SessionTable::MayStayAwake(ServerSession& session, std::shared_ptr<gates::GatePage> page) {
  const ClientDescription& client = session.client();
  const config::Tenant& tenant = *client.peer.tenant;
  AwakeCores::Wish wish{tenant.name(), AwakeOf(tenant), !client.local()};
  session.SetAwake(awake_cores_.Enter(session.id(), wish, std::move(page)));
}

void SessionTable::Abandon(uint64_t session) {
  warden_->Kill(session);
  awake_cores_.Leave(session);
  scheduling_->Close(session);
  placements_.Forget(session);
  host_memory_.Ended(session);
  statistics_.Ended(session);
  linked_sessions_.Ended(session);
  usage_->Forget(session);
}

bool SessionTable::MakeTokens(ServerSession& session, std::vector<transport::Token>* tokens) {
  if (!session.MakeNotes()) return false;
  tokens->resize(session.lanes());
  for (uint32_t lane = 0; lane < session.lanes(); ++lane) {
    if (!NewToken(&(*tokens)[lane])) return false;
    session.lane(lane).SetToken((*tokens)[lane]);
  }
  return true;
}

void SessionTable::Describe(const ServerSession& session, wire::OpenReply* reply) {
  reply->session = session.id();
  std::string host = HostName();
  std::erase_if(reply->processes, [](const wire::ProcessDescription& process) {
    return process.role == "longwire-worker" || process.role == "longwire-keeper";
  });
  reply->processes.push_back({"longwired", host, static_cast<uint32_t>(getpid())});
  uint32_t worker = static_cast<uint32_t>(session.worker().pid);
  reply->processes.push_back({"longwire-worker", host, worker});
  for (const warden::KeeperProcess& keeper : session.worker().keepers) {
    reply->processes.push_back({"longwire-keeper", host, static_cast<uint32_t>(keeper.pid)});
  }
}

// Empty, or why the session cannot be served: without these its tenant's limits did not hold.
std::string SessionTable::ServeWorker(ServerSession& session, const config::Tenant& tenant,
                                      uint64_t instead_of) {
  wire::Descriptor control = session.ControlSocket();
  if (!control.valid() ||
      !host_memory_.Opened(session.id(), HostMemoryOf(tenant), HostMemoryTermsOf(tenant),
                           control.get(), instead_of)) {
    return "its host memory cannot be limited: " + base::Reason(errno);
  }
  if (AwakeOf(tenant).count() != 0 && !session.client().local()) {
    const config::LiveConfig::Snapshot config = live_.Get();
    session.lane(0).SetTerms(config::ResumeGrace(*config), config->compression());
  }
  // A worker whose socket is closed is ending.
  (void)wire::SendMessage(control.get(), message::Pack(LogTermsOf(*live_.Get())));
  (void)wire::SendMessage(control.get(), message::Pack(links::TellLinks{}));
  // A local one waits for its client's socket (local_socket.cc).
  if (!session.client().local()) Keep(session);
  return images_.Serve(session.id(), tenant.name(), session.client().program, std::move(control));
}

// It is in the table already: a reload from now on finds it there.
bool SessionTable::MayStay(const std::shared_ptr<ServerSession>& session, std::string* sentence) {
  *sentence = check_ ? check_(*session) : "";
  if (sentence->empty()) return true;
  End(session, {static_cast<uint32_t>(transport::kLaunchFailed), *sentence});
  return false;
}

OpenedSession SessionTable::Open(std::span<const std::byte> bytes, wire::VersionRange link,
                                 const Peer& peer, const std::atomic<bool>& cancelled,
                                 PlacedSession* placed) {
  const Clock::time_point begun = Clock::now();
  if (peer.refused()) {
    return Refuse(peer, nullptr, {transport::kNoDevice, RefusalReason::kNotAllowed, peer.refusal});
  }
  if (peer.tenant->monitor()) {
    return Refuse(
        peer, nullptr,
        {transport::kNoDevice, RefusalReason::kNotAllowed,
         "the identity '" + peer.identity + "' may read metrics and status only (tenant '" +
             peer.tenant->name() + "' has monitor: true); list it at another tenant"});
  }
  OpeningRefusal refusal{transport::kDeviceUnavailable, RefusalReason::kRate, ""};
  // What is placed has waited at the server that it asked for a place.
  if (placed == nullptr && !entrance_.AwaitOpening(peer.identity, cancelled, &refusal.sentence)) {
    return Refuse(peer, nullptr, std::move(refusal));
  }
  refusal = {transport::kSystemDriverMismatch, RefusalReason::kVersion,
             "the request to open a session cannot be read; client and server are probably of "
             "different versions"};
  wire::OpenRequest request;
  wire::Reader reader(bytes);
  if (bytes.size() > wire::kMaxOpenBytes || request.Decode(reader) != wire::WireResult::kOk) {
    return Refuse(peer, nullptr, std::move(refusal));
  }
  auto versions = Agree(request.versions, link, &refusal.sentence);
  if (!versions) return Refuse(peer, &request, std::move(refusal));
  refusal = {transport::kDeviceUnavailable, RefusalReason::kNoDevice,
             "this server opens sessions where its pool has placed them"};
  if (pool_ != nullptr && placed == nullptr) return Refuse(peer, &request, std::move(refusal));
  const size_t descriptors = DescriptorsOf(request, peer);
  if (!Admit(peer, descriptors, &refusal)) return Refuse(peer, &request, std::move(refusal));
  OpenedSession opened;
  const auto before = live_.Get();
  // The worker decides: it chooses the newest of these that it speaks.
  std::vector<std::byte> introduction = wire::Narrowed(bytes, *versions);
  auto session =
      OpenAdmitted(request, introduction, *versions, peer, cancelled, placed, &opened, &refusal);
  if (session == nullptr) {
    Release(peer, descriptors);
    return Refuse(peer, &request, std::move(refusal));
  }
  if (!MayStay(session, &refusal.sentence)) {
    refusal = {transport::kNoDevice, RefusalReason::kNotAllowed, std::move(refusal.sentence)};
    return Refuse(peer, &request, std::move(refusal));
  }
  SendNewTerms(before, *session);
  Describe(*session, &opened.reply);
  opened_.fetch_add(1);
  opening_times_.Add(Clock::now() - begun);
  identities_.Opened(peer);
  Detached();  // until its client attaches
  LogOpened(*session, opened.reply.protocol);
  // A death before the session was in the table was not reported.
  if (session->WorkerIsDead()) {
    End(session, {static_cast<uint32_t>(transport::kLaunchFailed), "its worker ended"});
  }
  opened.session = std::move(session);
  return opened;
}

std::shared_ptr<ServerSession> SessionTable::OpenAdmitted(
    const wire::OpenRequest& request, std::span<const std::byte> introduction,
    wire::VersionRange versions, const Peer& peer, const std::atomic<bool>& cancelled,
    PlacedSession* placed, OpenedSession* opened, OpeningRefusal* refusal) {
  std::shared_ptr<ServerSession> session;
  PlacedSession made;
  for (bool want_warm : {true, false}) {
    session = StartSession(request, peer, want_warm, placed, refusal);
    if (session == nullptr && placed == nullptr && refusal->reason == RefusalReason::kNoDevice &&
        MakeRoom(request, peer, cancelled, &made)) {
      session = StartSession(request, peer, want_warm, &made, refusal);
      placements_.Forget(made.kept_by);
    }
    if (session == nullptr) return nullptr;
    if (session->Introduce(introduction, cancelled, &opened->reply, &refusal->sentence)) {
      CheckChoice(versions, &opened->reply);
      refusal->code = opened->reply.code;
      refusal->sentence = opened->reply.sentence;
      break;
    }
    // A worker that waited ahead of need may have died unnoticed; a fresh one gets one chance.
    if (!session->worker().warm || cancelled.load()) break;
    Log(LogLevel::kWarning, session->subject(), "a warm worker failed: " + refusal->sentence);
    Abandon(session->id());
  }
  if (refusal->code == 0 && !MakeTokens(*session, &opened->tokens)) {
    refusal->code = transport::kUnknown;
  }
  // Before it is in the table: whoever ends it there takes back what it was given here.
  if (refusal->code == 0) refusal->sentence = ServeWorker(*session, *peer.tenant);
  if (refusal->code == 0 && !refusal->sentence.empty()) {
    refusal->code = transport::kDeviceUnavailable;
  }
  {
    base::MutexLock lock(mutex_);
    if (refusal->code == 0 && ending_) *refusal = Stopping();
    if (refusal->code == 0) sessions_[session->id()] = session;
  }
  if (refusal->code == 0) return session;
  Abandon(session->id());
  return nullptr;
}

std::shared_ptr<ServerSession> SessionTable::Find(uint64_t id) {
  base::MutexLock lock(mutex_);
  auto found = sessions_.find(id);
  return found == sessions_.end() ? nullptr : found->second;
}

std::vector<std::shared_ptr<ServerSession>> SessionTable::List() {
  base::MutexLock lock(mutex_);
  std::vector<std::shared_ptr<ServerSession>> list;
  for (const auto& [id, session] : sessions_) list.push_back(session);
  return list;
}

void SessionTable::End(const std::shared_ptr<ServerSession>& session,
                       const transport::Closed& closed) {
  if (left_.load() || !session->End(closed)) return;
  Release(session->client().peer, session->client().descriptors);
  usage_->Ended(RecordOf(*session, closed));
  Abandon(session->id());
  if (pool_ != nullptr) pool_->Gone(*session);
  const Peer& peer = session->client().peer;
  const bool away = session->detached_since() != Clock::time_point::max();
  const auto grace = config::ResumeGrace(*live_.Get());
  {
    base::MutexLock lock(mutex_);
    sessions_.erase(session->id());
    if (!away) {
      for (uint64_t number : session->formerly) moved_.erase(number);
    }
    if (away) {
      farewells_.Add(session->id(), peer.identity, peer.tenant->name(), closed.sentence, grace);
    }
  }
  auto seconds = std::chrono::duration<double>(Clock::now() - session->opened()).count();
  identities_.Ended(peer, session->bytes_up(), session->bytes_down(), seconds);
  char text[96];
  snprintf(text, sizeof(text), "ended after %.3f s, code %u, %llu bytes up, %llu down", seconds,
           closed.code, static_cast<unsigned long long>(session->bytes_up()),
           static_cast<unsigned long long>(session->bytes_down()));
  Log(closed.code == 0 ? LogLevel::kInfo : LogLevel::kWarning, session->subject(),
      text + (closed.sentence.empty() ? "" : ": " + closed.sentence));
}

void SessionTable::EndAll(const transport::Closed& closed) {
  for (const auto& session : List()) End(session, closed);
}

void SessionTable::OnWorkerDied(const warden::WorkerDied& died) {
  std::shared_ptr<ServerSession> session = Find(died.session);
  if (session == nullptr) return;
  std::string sentence = died.sentence;
  if (sentence.empty()) sentence = "its worker ended by signal " + std::to_string(died.signal);
  End(session, {static_cast<uint32_t>(transport::kLaunchFailed), sentence});
}

}  // namespace longwire::daemon
