#include "server/warden/warden.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "base/cuda_codes.h"
#include "base/reason.h"
#include "server/warden/service_manager.h"
#include "wire/driver_variables.h"
#include "wire/guards.h"
#include "wire/limits.h"
#include "wire/rings/ring.h"

namespace longwire::warden {
namespace {

using std::chrono::milliseconds;

constexpr size_t kMaxConnections = 16;
constexpr useconds_t kPauseMicroseconds = 10'000;  // while it is out of descriptors
constexpr milliseconds kTick{100};                 // interval of checks while there are deadlines
constexpr milliseconds kWarmDelay{200};            // a starting session has the processors first

std::vector<std::string> Allowed(const std::vector<std::string>& environment) {
  std::vector<std::string> allowed;
  for (const auto& entry : environment) {
    std::string name = entry.substr(0, entry.find('='));
    if (name.size() < entry.size() && std::ranges::count(wire::kDriverVariables, name) != 0 &&
        entry.find('\0') == std::string::npos) {
      allowed.push_back(entry);
    }
  }
  std::ranges::sort(allowed);
  return allowed;
}

template <class M, class Handler>
bool Handle(std::span<const std::byte> packet, Handler handler) {
  M message;
  if (message::Unpack(packet, &message) != wire::WireResult::kOk) return false;
  handler(message);
  return true;
}

}  // namespace

Warden::Warden(Options options)
    : options_(std::move(options)),
      compile_cache_(options_.walls.separate && !options_.walls.starter_socket.empty()
                         ? ""  // the service manager's starter has its own folder
                         : options_.compile_cache),
      ledger_(keeper::TenantLedger::Create()),
      grace_(options_.orphan_time) {}

bool Warden::Listen(std::string* sentence, wire::Descriptor given) {
  std::string path = given.valid() ? service::PathOf(given) : options_.socket;
  if (path != options_.socket) {
    *sentence = "the service manager listens at '" + path + "', but longwired connects to " +
                options_.socket + ": make longwire-warden.socket and the key warden: agree";
    return false;
  }
  listener_ = given.valid() ? std::move(given) : wire::ListenLocal(path);
  struct stat status {};
  if (!listener_.valid() || stat(path.c_str(), &status) != 0) {
    *sentence = "cannot listen at " + path + ": " + base::Reason(errno);
    return false;
  }
  owner_ = status.st_uid;
  return true;
}

void Warden::Run() {
  while (RunOnce(milliseconds(-1))) {
  }
}

bool Warden::RunOnce(milliseconds timeout) {
  bool hurries = KeepKeepers();
  hurries |= KeepWarm();
  hurries |= KillOrphans();
  hurries |= KeepStarter();
  bool used = false;
  for (auto& [number, worker] : workers_) used |= worker.session != 0;
  if (!used && options_.own_program.WasReplaced()) return false;
  used |= !connections_.empty();
  if (used) last_needed_ = Clock::now();
  if (options_.on_demand && Clock::now() - last_needed_ > options_.idle_end) return false;
  hurries |= options_.on_demand && !used;

  if (limits_due_) SendLimits();
  hurries |= FillPollSet();
  if (hurries && (timeout.count() < 0 || timeout > kTick)) timeout = kTick;
  int ready = poll_set_.Wait(starter_.has_ends() ? milliseconds(0) : timeout);
  if (used) last_needed_ = Clock::now();  // until now
  if (ready > 0 || starter_.has_ends()) HandleEvents();
  return true;
}

bool Warden::FillPollSet() {
  const auto now = Clock::now();
  bool paused = false;
  poll_set_.Clear();
  arrivals_ = poll_set_.Add(listener_.get());
  for (auto& [descriptor, connection] : connections_)
    connection.readable = poll_set_.Add(descriptor);
  for (auto& [device, keeper] : keepers_) {
    SendAttaches(device);
    short out = keeper.succeeds && keeper.version != 0 ? POLLOUT : 0;
    keeper.readable = poll_set_.Add(keeper.control.get(), static_cast<short>(POLLIN | out));
    keeper.end = poll_set_.Add(keeper.process.pidfd.get());
  }
  for (auto& [number, worker] : workers_) {
    worker.end = poll_set_.Add(worker.walled ? -1 : worker.process.pidfd.get());
    worker.lines = poll_set_.Add(worker.log.Listens(now) ? worker.log.descriptor() : -1);
    paused |= worker.log.IsPaused(now);
  }
  starter_said_ = poll_set_.Add(starter_.socket());
  return paused;
}

// Workers and connections are collected first: handling one may remove others.
void Warden::HandleEvents() {
  std::vector<uint64_t> ended;
  for (auto& [number, worker] : workers_) {
    if (poll_set_.Ready(worker.end)) ended.push_back(number);
    if (poll_set_.Ready(worker.lines)) worker.log.Read(worker.process.pid, Clock::now());
  }
  for (uint64_t number : ended) OnWorkerEnded(number);
  if (poll_set_.Ready(starter_said_) || starter_.has_ends()) ReadStarter();
  for (auto& [device, keeper] : keepers_) {
    if (poll_set_.Ready(keeper.readable)) ReadKeeper(device);
    if (poll_set_.Ready(keeper.end)) OnKeeperEnded(device);
  }
  std::vector<int> readable;
  for (auto& [descriptor, connection] : connections_) {
    if (poll_set_.Ready(connection.readable)) readable.push_back(descriptor);
  }
  for (int descriptor : readable) {
    if (connections_.contains(descriptor)) Serve(descriptor);
  }
  if (poll_set_.Ready(arrivals_)) Accept();
}

void Warden::Accept() {
  wire::Descriptor socket = wire::AcceptLocal(listener_.get());
  // Who connects is still there in the next pass.
  if (!socket.valid() && (errno == EMFILE || errno == ENFILE)) usleep(kPauseMicroseconds);
  if (!socket.valid() || !wire::PeerIsAllowed(socket.get(), owner_) ||
      connections_.size() >= kMaxConnections) {
    return;
  }
  fcntl(socket.get(), F_SETFL, O_NONBLOCK);
  int descriptor = socket.get();
  connections_[descriptor].socket = std::move(socket);
}

void Warden::Serve(int connection) {
  bool closed = false;
  Connection& from = connections_.at(connection);
  auto message = wire::ReceiveMessage(from.socket.get(), milliseconds(0), &closed);
  if (!message) {
    if (closed) Disconnect(connection);
    return;
  }
  if (from.version == 0 && !Greet(connection, message->bytes)) return;
  auto answer = [&](const auto& request) { Do(connection, request); };
  auto kill = [&](const KillWorker& request) {
    if (uint64_t number = FindSession(request.session)) Kill(workers_.at(number));
  };
  auto keep = [&](const KeepSession& request) { Keep(request, std::move(message->descriptors)); };
  auto policy = [&](const SetPolicy& request) {
    TakePolicy(request, std::move(message->descriptors));
  };
  bool known =
      Handle<StartWorker>(message->bytes, answer) || Handle<KillWorker>(message->bytes, kill) ||
      Handle<ListWorkers>(message->bytes, answer) || Handle<GetStats>(message->bytes, answer) ||
      Handle<SetQuota>(message->bytes, answer) || Handle<SetLimits>(message->bytes, answer) ||
      Handle<GetEvents>(message->bytes, answer) || Handle<TakeSession>(message->bytes, answer) ||
      Handle<SetGrace>(message->bytes, answer) || Handle<KeepSession>(message->bytes, keep) ||
      Handle<GetWalls>(message->bytes, answer) ||
      Handle<message::LogTerms>(message->bytes, answer) ||
      Handle<SetPolicy>(message->bytes, policy);
  if (!known) Disconnect(connection);
}

void Warden::Disconnect(int connection) {
  connections_.erase(connection);
  for (auto& [number, worker] : workers_) {
    if (worker.connection != connection) continue;
    worker.connection = -1;
    worker.orphaned = Clock::now();
  }
}

// A daemon that does not read its answers is disconnected.
void Warden::Reply(int connection, std::span<const std::byte> packet, std::span<const int> files) {
  auto found = connections_.find(connection);
  if (found == connections_.end()) return;
  if (!wire::SendMessage(found->second.socket.get(), packet, files)) Disconnect(connection);
}

std::string Warden::Check(const StartWorker& request) {
  if (request.session == 0 || FindSession(request.session) != 0) return "the session id is in use";
  if (!request.driver.empty() && request.driver != options_.driver && request.driver != driver_) {
    return "this warden serves the driver " + driver_;
  }
  if (request.environment.size() > wire::kMaxEnvironment) return "too many variables";
  for (size_t i = 0; i < request.devices.size() && !wire::kPlantedBug; ++i) {
    if (std::ranges::count(request.devices, request.devices[i]) != 1 ||
        std::ranges::count(options_.devices, request.devices[i]) != 1) {
      return "device " + std::to_string(request.devices[i]) + " is not served here";
    }
  }
  return workers_.size() >= kMaxWorkers ? "too many workers" : "";
}

void Warden::Do(int connection, const StartWorker& request) {
  WorkerStarted refused;
  refused.request = request.request;
  refused.code = base::kInvalidValue;
  refused.sentence = Check(request);
  refused.session = request.session;
  if (!refused.sentence.empty()) return Reply(connection, message::Pack(refused));
  std::vector<int32_t> devices = request.devices.empty() ? options_.devices : request.devices;
  std::vector<std::string> environment = Allowed(request.environment);
  uint64_t number = 0;
  for (auto& [candidate, worker] : workers_) {
    bool fits = worker.devices == devices && worker.environment == environment;
    if (request.want_warm && worker.session == 0 && fits) number = candidate;
  }
  bool warm = number != 0;
  if (!warm) number = StartNewWorker(devices, environment, &refused.sentence);
  uint32_t tenant = TenantNumber(request.tenant);
  if (tenant == 0 && !request.tenant.empty()) {
    number = 0;
    refused.sentence = "more tenants than the ledger has room for";
  }
  if (number == 0) {
    refused.code = base::kSystemNotReady;
    return Reply(connection, message::Pack(refused));
  }
  Worker& worker = workers_.at(number);
  worker.session = request.session;
  worker.connection = connection;
  Await(worker, request, warm);
  AssignFolders(worker, request.tenant);
  warm_after_ = Clock::now() + kWarmDelay;
  BeginMove(number, worker, request.instead_of.value_or(0), tenant);
  AssignTenant(number, worker, tenant);
  if (request.promised.value_or(0) == 0) ReplyStarted(connection, worker.start, worker, warm);
}

void Warden::Do(int connection, const ListWorkers& request) {
  ListEnd end{request.request, 0};
  for (auto& [number, worker] : workers_) {
    if (worker.session == 0) continue;
    if (worker.connection != -1 && worker.connection != connection) continue;
    worker.connection = connection;
    ReplyStarted(connection, request.request, worker, false);
    if (!connections_.contains(connection)) return;  // it does not read: nobody's workers now
    ++end.count;
  }
  Reply(connection, message::Pack(end));
}

void Warden::Do(int connection, const GetStats& request) {
  Stats stats{request.request, driver_, {}, {}, {}, {}, {}, {}, {}};
  if (connections_.at(connection).version >= keeper::kChargesSince) {
    stats.charges = Charges();
    stats.health = Health();
  }
  if (connections_.at(connection).version >= kPartsSince) {
    AllWanted& all = stats.wanted.emplace();
    for (auto& [name, number] : tenants_) {
      const uint64_t bytes = ledger_->TakeWanted(number);
      if (bytes != 0) all.tenants.push_back({name, bytes});
    }
  }
  if (connections_.at(connection).version >= keeper::kPromisesSince) stats.promises = Promises();
  for (auto& [name, number] : tenants_) {
    stats.tenants.push_back(
        {name, ledger_->limit(number), ledger_->charged(number), ledger_->reservation(number)});
  }
  for (auto& [device, keeper] : keepers_) {
    const keeper::KeeperState& state = keeper.state;
    stats.devices.push_back({device,
                             state.device_name,
                             keeper.process.pid,
                             state.total,
                             state.lendable,
                             state.leased,
                             state.leased_peak,
                             state.idle,
                             state.scrub_pending,
                             state.refused,
                             state.asked,
                             state.drained,
                             state.returned,
                             state.remaps,
                             state.remapped,
                             state.swapped,
                             state.swap_host_memory,
                             state.swapped_out,
                             state.swapped_in,
                             state.chunk_sizes,
                             state.facts});
  }
  for (auto& [number, worker] : workers_) {
    for (int32_t device : worker.devices) {
      SessionStats session{worker.session, worker.process.pid, device, 0, 0, 0, 0};
      for (const keeper::WorkerLease& lease : keepers_[device].state.workers) {
        if (lease.worker != number) continue;
        session.leased = lease.leased;
        session.leased_peak = lease.leased_peak;
        session.idle = lease.idle;
        session.swapped = lease.swapped;
      }
      stats.sessions.push_back(session);
    }
  }
  Reply(connection, message::Pack(stats));
}

void Warden::Do(int, const message::LogTerms& request) {
  log_terms_ = request;
  for (auto& [number, worker] : workers_) worker.log.SetLimit(request.lines_per_second);
}

uint32_t Warden::TenantNumber(const std::string& name) {
  if (name.empty()) return 0;
  auto found = tenants_.find(name);
  if (found != tenants_.end()) return found->second;
  auto number = static_cast<uint32_t>(tenants_.size() + 1);
  if (number >= keeper::TenantLedger::kTenants) return 0;
  return tenants_[name] = number;
}

uint64_t Warden::FindSession(uint64_t session) const {
  for (auto& [number, worker] : workers_) {
    if (session != 0 && worker.session == session) return number;
  }
  return 0;
}

uint64_t Warden::StartNewWorker(const std::vector<int32_t>& devices,
                                const std::vector<std::string>& environment,
                                std::string* sentence) {
  if (!MayStartWorkers(sentence)) return 0;
  const uint64_t number = next_worker_++;
  Worker worker;
  worker.number = number;
  worker.walled = starter_.running();
  worker.devices = devices;
  worker.environment = environment;
  worker.started = Clock::now();
  auto up = wire::RingMemory::Create(wire::kRingBytes);
  auto down = wire::RingMemory::Create(wire::kRingBytes);
  wire::Descriptor worker_control;
  auto refused = [sentence] {
    *sentence = "no worker can be started: " + base::ReasonOfNoThread(errno);
    return uint64_t{0};
  };
  if (up == nullptr || down == nullptr) return refused();
  worker.up = wire::Duplicate(up->descriptor());
  worker.down = wire::Duplicate(down->descriptor());
  if (!worker.up.valid() || !worker.down.valid()) return refused();
  if (!wire::LocalPair(&worker.control, &worker_control)) return refused();

  // Behind walls its first descriptor is its settings.
  const int control = 3 + (worker.walled ? 1 : 0), up_at = control + 1, down_at = control + 2;
  Program program{options_.worker_program,
                  {"--driver", driver_, "--addresses", options_.walls.addresses},
                  CacheVariables(worker),
                  {worker_control.get(), worker.up.get(), worker.down.get()},
                  worker.walled || own_network_};
  wire::Descriptor error = worker.log.Open();
  worker.log.SetLimit(log_terms_.lines_per_second);
  if (!error.valid()) return refused();
  program.error = error.get();
  // After ours: the first of two variables with one name counts.
  program.environment.insert(program.environment.end(), environment.begin(), environment.end());
  std::vector<wire::Descriptor> worker_ends(devices.size()), keeper_ends(devices.size());
  std::string ordinals, sockets;
  for (size_t i = 0; i < devices.size(); ++i) {
    if (RunningKeeper(devices[i], sentence) == nullptr) return 0;
    if (!wire::LocalPair(&worker_ends[i], &keeper_ends[i])) return refused();
    ordinals += (i == 0 ? "" : ",") + std::to_string(devices[i]);
    sockets += (i == 0 ? "" : ",") + std::to_string(down_at + 1 + static_cast<int>(i));
    program.descriptors.push_back(worker_ends[i].get());
  }
  program.arguments.insert(program.arguments.end(),
                           {"--control", std::to_string(control), "--up", std::to_string(up_at),
                            "--down", std::to_string(down_at), "--device", ordinals, "--keeper",
                            sockets, "--system-calls", options_.walls.system_calls});
  // The kernel counts a user's processes.
  if (worker.walled && starter_.has(starter::kOwnUser)) {
    program.arguments.insert(program.arguments.end(),
                             {"--processes", std::to_string(options_.walls.processes)});
  }
  worker.process = worker.walled ? starter_.StartWorker(std::move(program)) : Spawn(program);
  if (worker.process.pid == 0 || !worker.process.pidfd.valid()) return refused();
  for (size_t i = 0; i < devices.size(); ++i) {
    const int files[] = {keeper_ends[i].get(), worker.process.pidfd.get()};
    if (!wire::SendMessage(keepers_.at(devices[i]).control.get(),
                           message::Pack(keeper::Attach{number, {}}), files)) {
      Kill(worker);  // its end is handled as any other
    }
  }
  worker.keeper_ends = std::move(keeper_ends);
  workers_.emplace(number, std::move(worker));
  return number;
}

void Warden::ReadKeeper(int32_t device) {
  Keeper& keeper = keepers_.at(device);
  bool closed = false;
  auto message = wire::ReceiveMessage(keeper.control.get(), milliseconds(0), &closed);
  if (message && keeper.version == 0 && !GreetKeeper(keeper, message->bytes)) return;
  keeper::EndWorker end;
  keeper::KeeperState state;
  keeper::Promised promised;
  if (message && message::Unpack(message->bytes, &promised) == wire::WireResult::kOk) {
    TakePromised(device, promised);
  } else if (message && message::Unpack(message->bytes, &end) == wire::WireResult::kOk) {
    End(end);
  } else if (message && message::Unpack(message->bytes, &state) == wire::WireResult::kOk) {
    TakeState(keeper, std::move(state));
  }
  if (closed) keeper.control.Reset();  // its end follows
}

void Warden::OnKeeperEnded(int32_t device) {
  Keeper& keeper = keepers_.at(device);
  int exit_code = 0, signal = 0;
  if (!Reap(keeper.process, &exit_code, &signal)) return;
  std::string how = HowItEnded(exit_code, signal);
  std::fprintf(stderr, "longwire-warden: the keeper of device %d %s\n", device, how.c_str());
  if (keeper.state.sentence.empty()) keeper.state.sentence = "its keeper " + how;
  keeper.process = {};
  keeper.control.Reset();
  KeepFigures(keeper);
  RefuseStartsOn(device);
  PlanSuccessor(device);
  int sessions = SessionsOn(device);
  if (sessions == 0) return;
  std::fprintf(stderr,
               "longwire-warden: running sessions (%d) keep their memory of device %d; another "
               "keeper takes it over\n",
               sessions, device);
}

void Warden::OnWorkerEnded(uint64_t number) {
  Worker& worker = workers_.at(number);
  int exit_code = 0, signal = 0;
  if (Reap(worker.process, &exit_code, &signal)) OnWorkerEnded(number, exit_code, signal);
}

void Warden::OnWorkerEnded(uint64_t number, int exit_code, int signal) {
  Worker& worker = workers_.at(number);
  worker.log.Finish(worker.process.pid, worker.session, Clock::now());
  if (!worker.unpromised.empty()) RefuseStart(worker, worker.devices[0], "its worker ended", false);
  compile_cache_.Forget(number);
  CloseAccounts(number, worker);
  ledger_->EndMoves(number);
  std::string how = "worker " + std::to_string(worker.process.pid) + " " +
                    (worker.why.empty() ? HowItEnded(exit_code, signal) : worker.why);
  if (worker.session != 0) {
    KeepEnd(worker, how);
    Reply(worker.connection,
          message::Pack(WorkerDied{worker.session, worker.process.pid, exit_code, signal, how}));
  } else if (!worker.devices.empty()) {
    std::fprintf(stderr, "longwire-warden: warm %s\n", how.c_str());
    WarmDied(worker);
  }
  workers_.erase(number);
}

}  // namespace longwire::warden
