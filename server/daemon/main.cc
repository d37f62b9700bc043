// longwired: lends this host's CUDA devices to programs on other hosts.
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>

#include "base/reason.h"
#include "link/transport/grpc_setup.h"
#include "link/transport/log.h"
#include "server/daemon/accept_loop.h"
#include "server/daemon/access/removals.h"
#include "server/daemon/admin.h"
#include "server/daemon/bridges/bridges.h"
#include "server/daemon/control.h"
#include "server/daemon/inspect.h"
#include "server/daemon/journal.h"
#include "server/daemon/local_socket.h"
#include "server/daemon/metrics/endpoint.h"
#include "server/daemon/metrics/scrape.h"
#include "server/daemon/metrics/secure_endpoint.h"
#include "server/daemon/notify.h"
#include "server/daemon/pool/pool.h"
#include "server/daemon/sessions/terms.h"
#include "server/daemon/settings/options.h"
#include "server/daemon/settings/paths.h"
#include "server/daemon/settings/reload.h"
#include "server/daemon/settings/safe_limits.h"
#include "wire/descriptor_table.h"
#include "wire/descriptors.h"
#include "wire/socket.h"
#include "wire/switches.h"

namespace longwire::daemon {
namespace {

using transport::Log;
using transport::LogLevel;

// So long a daemon may take to end: it tells its clients first.
constexpr std::chrono::seconds kEndPatience{10};
constexpr std::chrono::milliseconds kEndLook{50};

// A warden's workers belong to one daemon: a second would take them over and end them. One that is
// ending is waited for, unless one of `signals` says that this one shall end, too.
wire::Descriptor LockWarden(const std::string& socket, const sigset_t& signals,
                            std::string* sentence) {
  const std::string path = socket + ".lock";
  wire::Descriptor file(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, S_IRUSR | S_IWUSR));
  *sentence = "cannot lock " + path + ": " + base::Reason(errno);
  if (!file.valid()) return file;
  *sentence = "another longwired uses the warden at " + socket +
              " and does not end; give this one its own by --warden";
  auto deadline = std::chrono::steady_clock::now() + kEndPatience;
  timespec look{0, std::chrono::nanoseconds(kEndLook).count()};
  bool said = false;
  while (file.valid() && flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    if (!said) Log(LogLevel::kInfo, "another longwired is there; waiting for it to end");
    said = true;
    int signal = sigtimedwait(&signals, nullptr, &look);
    if (signal == SIGTERM || signal == SIGINT || std::chrono::steady_clock::now() > deadline)
      file.Reset();
  }
  return file;
}

// The words of the file and of the log are the same.
static_assert(static_cast<int>(LogLevel::kDebug) == config::debug);

Reloader::Outcome ReloadFor(const std::string& who, Reloader& reloader, Notifier& notifier) {
  notifier.Reloading();
  Reloader::Outcome outcome = reloader.Reload(who);
  notifier.Ready(outcome.done ? "serving" : "serving; the last reload was refused, see the log");
  return outcome;
}

// What an operator should know about a daemon that other hosts can reach.
void WarnOfExposure(const config::Config& config) {
  for (const std::string& sentence : UnsetLimits(config)) Log(LogLevel::kWarning, sentence);
  for (const config::Tenant& tenant : config.tenants()) {
    for (const std::string& sentence : UnsetLimits(config, tenant)) {
      Log(LogLevel::kWarning, {.tenant = tenant.name()}, sentence);
    }
  }
  if (config.tenants_size() == 0 && config::LeavesHost(config)) {
    Log(LogLevel::kWarning,
        "other hosts can reach this longwired, and it has no tenants: all users are one tenant, "
        "'default', with limits that nobody has set (longwire status shows them)");
  }
}

void WarnOfMetrics(const std::string& where) {
  std::string problem;
  auto address = transport::ParseAddress(where, &problem);
  if (!address || transport::IsLoopback(*address)) return;
  Log(LogLevel::kWarning, "metrics at " + where +
                              " can be read, without encryption, by everybody who reaches that "
                              "port: they name tenants and identities");
}

Scrape NewScrape(SessionTable& table, const AcceptLoop& accept, const Pool* pool) {
  Scrape scrape;
  scrape.figures = InspectAll(table, {});
  scrape.drifts = table.statistics().Drifts();
  InspectWithdrawal(pool, true, &scrape.figures);
  scrape.per_session = table.config()->metrics_per_session();
  scrape.sessions_limit = table.config()->max_sessions();
  scrape.refusals = table.identities().Refusals();
  scrape.openings = table.opening_times().Get();
  scrape.moves = table.move_figures().Get();
  scrape.certificate_expires = accept.CertificateExpires();
  scrape.process = ReadProcess();
  if (pool != nullptr) {
    std::string sentence;
    scrape.pool = {pool->joined(&sentence), pool->places(), pool->placed()};
  }
  return scrape;
}

SecureEndpoint::Uses SecureUses(SessionTable& table, AcceptLoop& accept, Pool* pool) {
  return {.material = [&accept] { return accept.Material(); },
          .refusal =
              [&accept](const std::string& chain, const std::string& address) {
                return accept.RefusalToRead(chain, address);
              },
          .text = [&, pool] { return TextOf(FamiliesOf(NewScrape(table, accept, pool))); }};
}

bool StartMetrics(const config::Config& config, MetricsEndpoint& plain, SecureEndpoint& secure) {
  std::string sentence;
  if (config.has_metrics()) WarnOfMetrics(config.metrics());
  bool started = (!config.has_metrics() || plain.Start(config.metrics(), &sentence)) &&
                 (!config.has_metrics_tls() || secure.Start(config.metrics_tls(), &sentence));
  if (!started) Log(LogLevel::kError, sentence);
  return started;
}

bool ListensAt(const config::Config& config, uint32_t port) {
  std::vector<transport::Address> addresses = config::ListenAddresses(config);
  return std::ranges::any_of(addresses,
                             [&](const transport::Address& one) { return one.port == port; });
}

transport::WhoReply Who(AcceptLoop& accept, const transport::WhoRequest& request) {
  transport::WhoReply reply;
  const Peer peer = accept.HolderOf(request.certificates());
  reply.set_identity(peer.identity);
  if (peer.refused()) {
    reply.set_refusal(peer.refusal);
    return reply;
  }
  reply.set_tenant(peer.tenant->name());
  reply.set_admin(peer.SeesAll());
  return reply;
}

std::string AnswerControl(const Control::Caller& caller, std::string_view encoded, Admin& admin,
                          AcceptLoop& accept, Pool* pool) {
  SessionTable& table = accept.table();
  transport::ControlRequest request;
  transport::ControlReply reply;
  bool read = request.ParseFromArray(encoded.data(), static_cast<int>(encoded.size()));
  if (read && request.port() != 0 && !ListensAt(*table.config(), request.port())) {
    reply.set_another_daemon(true);
  } else if (request.has_inspect()) {
    *reply.mutable_inspect() = InspectAll(table, request.inspect());
    InspectWithdrawal(pool, true, reply.mutable_inspect());
    if (request.inspect().pool()) InspectPool(pool, true, "", reply.mutable_inspect());
  } else if (request.has_who()) {
    *reply.mutable_who() = Who(accept, request.who());
  } else if (request.has_admin() && !caller.administers) {
    reply.set_refusal("members of the watch_group may only look");
  } else if (request.has_admin()) {
    *reply.mutable_admin() = admin.Execute(caller.name, request.admin());
  } else {
    reply.set_refusal("this longwired (" LONGWIRE_VERSION
                      ") does not know what it is asked for; upgrade it");
  }
  return reply.SerializeAsString();
}

void StartControl(Control& control, const config::Config& config) {
  std::string sentence;
  const Control::Groups groups{config.admin_group(), config.watch_group()};
  if (control.Start(ControlPath(), &sentence, groups)) return;
  Log(LogLevel::kWarning, sentence + "; longwired --reload does not reach this one, SIGHUP does");
}

// Returns the signal that ends the daemon.
int WaitForTheEnd(const sigset_t& signals, Reloader& reloader, Notifier& notifier) {
  while (true) {
    int signal = notifier.WaitForSignal(signals);
    if (signal != SIGHUP) return signal;
    ReloadFor("SIGHUP", reloader, notifier);
  }
}

// Nobody is opened by other rules than those of the configuration.
bool TakePolicies(SessionTable& table, std::string* sentence) {
  if (!table.policies().Prepare(*table.config(), sentence)) return false;
  table.policies().Apply();
  return true;
}

// Before a reload: nothing is in force yet, and nothing stays if it is refused.
bool Prepare(SessionTable& table, AcceptLoop& accept, const config::Config& next,
             std::string* problem) {
  if (!table.policies().Prepare(next, problem)) return false;
  if (accept.ReloadCredentials(next, problem)) return true;
  table.policies().Abandon();
  return false;
}

// First the sessions of the daemon before: their clients come back as soon as the port is open.
bool Begin(SessionTable& table, AcceptLoop& accept, LocalSocket& local_socket, Pool* pool) {
  std::string sentence;
  const std::string path = config::LocalSocketPath(*table.config());
  accept.set_pool(pool);
  local_socket.set_pool(pool);
  bool started = TakePolicies(table, &sentence) && table.Start(&sentence) &&
                 (pool == nullptr || pool->Start(&sentence)) && accept.Start(&sentence) &&
                 (path.empty() || local_socket.Start(path, &sentence));
  local_socket.Inherit(table.InheritedClients());
  if (!started) Log(LogLevel::kError, sentence);
  return started;
}

void SetLog(const config::Config& config) {
  transport::SetLogLevel(static_cast<LogLevel>(config.log_level()));
  transport::SetLogLimit(config.admission().log_lines_per_second());
}

int Serve(config::LiveConfig& live, Reloader& reloader, const sigset_t& signals) {
  const config::LiveConfig::Snapshot first = live.Get();
  live.Subscribe(SetLog);
  std::string sentence;
  wire::Descriptor lock;
  if (PrepareFolderOf(first->warden(), &sentence)) {
    lock = LockWarden(first->warden(), signals, &sentence);
  }
  if (!lock.valid()) {
    Log(LogLevel::kError, sentence);
    return 1;
  }
  SessionTable table(live);
  std::unique_ptr<Pool> pool;  // outlives those who open sessions
  if (first->has_pool()) pool = std::make_unique<Pool>(table, first->pool());
  AcceptLoop accept(table);
  LocalSocket local_socket(table);
  Removals removals(table, accept.revocations(),
                    [&accept](const std::string& chain) { return accept.Distrust(chain); });
  table.set_check([&removals](const ServerSession& session) { return removals.CheckNew(session); });
  table.set_material([&accept] { return accept.Material(); });
  Bridges bridges(table, accept);
  if (!Begin(table, accept, local_socket, pool.get())) {
    table.Leave();
    return 1;
  }
  reloader.set_preparation([&](const config::Config& next, std::string* problem) {
    return Prepare(table, accept, next, problem);
  });
  live.Subscribe([&](const config::Config& now) {
    local_socket.SetMode(now);
    table.policies().Apply();
    table.scheduling().Change(SchedulingOptionsOf(now));
    ApplyTenants(now, table.scheduling(), table.awake_cores(), table.warden(), table.lendable());
    table.SendTerms(now);
  });
  live.Subscribe([&removals](const config::Config&) { removals.CheckAll(); });
  live.Subscribe(WarnOfExposure);
  WarnOfExposure(*first);
  removals.Start();
  MetricsEndpoint metrics([&] { return FamiliesOf(NewScrape(table, accept, pool.get())); });
  SecureEndpoint secure_metrics(SecureUses(table, accept, pool.get()));
  if (!StartMetrics(*first, metrics, secure_metrics)) {
    table.Leave();
    return 1;
  }
  Notifier notifier(service::Manager::Ours(), accept);
  Admin admin([&](const std::string& who) { return ReloadFor(who, reloader, notifier); }, table,
              removals, pool.get());
  accept.set_admin(&admin);
  Control control([&](const std::string& who) { return ReloadFor(who, reloader, notifier); },
                  [&](const Control::Caller& caller, std::string_view request) {
                    return AnswerControl(caller, request, admin, accept, pool.get());
                  });
  StartControl(control, *first);
  Log(LogLevel::kInfo, "ready, version " LONGWIRE_VERSION);
  notifier.Ready("serving");
  int signal = WaitForTheEnd(signals, reloader, notifier);
  control.Stop();
  Log(LogLevel::kInfo, "ending on signal " + std::to_string(signal));
  notifier.Stopping();
  // Another daemon is to follow; until then the warden keeps the sessions.
  if (signal != SIGINT) table.Leave();
  secure_metrics.Stop();
  accept.Stop();
  local_socket.Stop();
  removals.Stop();
  if (pool != nullptr) pool->Stop();
  return 0;
}

int AskTheDaemon() {
  std::string text;
  bool done = AskForReload(ControlPath(), &text);
  std::fputs(text.c_str(), done ? stdout : stderr);
  return done ? 0 : 1;
}

// Before there are threads, so that they are blocked in every one, gRPC's too: the main thread
// waits for them, and one that comes earlier waits for it.
sigset_t BlockSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&signals, signal);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return signals;
}

int Main(int count, char** arguments) {
  wire::OpenStandardDescriptors();
  base::SayWhyTerminated("longwired");
  Refusal refusal;
  std::optional<CommandLine> command_line = ParseCommandLine(count, arguments, &refusal);
  if (!command_line) {
    std::fputs(refusal.text.c_str(), refusal.status == 0 ? stdout : stderr);
    return refusal.status;
  }
  if (command_line->reload) return AskTheDaemon();
  config::Problems problems;
  config::Draft draft = Configure(*command_line, &problems);
  if (!problems.empty()) {
    std::fputs(problems.Text().c_str(), stderr);
    return refusal.status;
  }
  if (command_line->as_starter || !command_line->warden_settings.empty()) {
    std::string sentence;
    if (command_line->as_starter) {
      BecomeStarter(draft.config, &sentence);
    } else if (WriteWardenSettings(draft.config, command_line->warden_settings, &sentence)) {
      return 0;
    }
    std::fprintf(stderr, "longwired: %s\n", sentence.c_str());
    return 1;
  }
  signal(SIGXFSZ, SIG_IGN);  // a file beyond the limit is an error of the write
  const sigset_t signals = BlockSignals();
  service::Manager::Ours();  // while there is one thread only: it changes the environment
  config::LiveConfig live(std::move(draft.config));
  SetLog(*live.Get());
  LogToJournal();
  for (const std::string& warning : draft.warnings) Log(LogLevel::kWarning, warning);
  for (const std::string& sentence : wire::UnknownSwitches()) Log(LogLevel::kWarning, sentence);
  transport::PrepareProcess();
  wire::PrepareDescriptorTable();  // divided by server/admission/descriptor_plan.h
  Reloader reloader(std::move(*command_line), live);
  return Serve(live, reloader, signals);
}

}  // namespace
}  // namespace longwire::daemon

int main(int count, char** arguments) { return longwire::daemon::Main(count, arguments); }
