// longwire status: what a server has and who uses it.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>

#include "cli/operator/operator.h"
#include "cli/operator/programs.h"
#include "cli/pool/pool.h"
#include "cli/status_json.h"
#include "cli/text.h"
#include "link/transport/grpc_setup.h"

namespace longwire::cli {
namespace {

std::string PidList(const transport::Session& session) {
  std::string list;
  for (int pid : session.keeper_pids()) list += (list.empty() ? "" : ",") + std::to_string(pid);
  return list;
}

// The shares that the weights ask for, and the actual ones.
void PrintShares(const transport::InspectReply& reply) {
  const transport::SchedulerFigures& scheduler = reply.scheduler();
  bool by_weight = scheduler.enabled() && scheduler.policy() == "weighted_fair";
  bool shared = false;
  for (const transport::TenantFigures& tenant : reply.tenants()) {
    if (tenant.share_due() <= 0 || tenant.share_due() >= 1) continue;
    shared = true;
    std::printf("share %s: %.0f %% by weight, %.0f %% in the last minute\n",
                Printable(tenant.name()).c_str(), 100 * tenant.share_due(),
                100 * tenant.share_had());
  }
  if (!shared || by_weight) return;
  std::printf(
      "  (%s: the hardware shares, by its own order, where no latency-critical session is;\n"
      "   for shares by weight set scheduler: {policy: weighted_fair})\n",
      scheduler.enabled() ? Printable(scheduler.policy()).c_str() : "scheduler off");
}

// The part of a sum of memory that is not leased from keepers.
std::string NotLeased(uint64_t charged) {
  return charged == 0 ? "" : " (" + BytesText(charged) + " of it not leased)";
}

uint64_t ChargedTo(const transport::Session& session) {
  uint64_t charged = 0;
  for (const transport::SessionMemory& memory : session.memory()) charged += memory.charged();
  return charged;
}

double Milliseconds(uint64_t microseconds) { return static_cast<double>(microseconds) / 1e3; }

void PrintHostMemory(const transport::TenantFigures& tenant) {
  if (tenant.host_memory_limit() == 0) return;  // an older server
  bool limited = tenant.session_host_memory_limit() != UINT64_MAX;
  std::printf("  memory of the host for its sessions: %s of %s%s%s\n",
              BytesText(tenant.host_memory()).c_str(),
              BytesText(tenant.host_memory_limit()).c_str(), limited ? "; each may have " : "",
              limited ? BytesText(tenant.session_host_memory_limit()).c_str() : "");
}

void PrintAwakeCores(const transport::InspectReply& reply) {
  auto awake = [](const transport::TenantFigures& one) { return one.awake_microseconds() != 0; };
  if (std::ranges::none_of(reply.tenants(), awake)) return;
  std::printf("awake cores: %u of %u in use\n", reply.scheduler().awake_cores_in_use(),
              reply.scheduler().awake_cores());
}

void PrintAwake(const transport::Session& session) {
  if (session.awake_microseconds() == 0) return;
  std::printf("  awake for %g ms after a message%s, %.3f s of processor time\n",
              Milliseconds(session.awake_microseconds()),
              session.awake_granted() ? "" : " (not now: there are too few awake cores)",
              session.awake_seconds());
}

void PrintTenants(const transport::InspectReply& reply) {
  for (const transport::TenantFigures& tenant : reply.tenants()) {
    bool limited = tenant.memory_limit() != UINT64_MAX;
    // Of those that no configuration names it is 0, which counts as 1.
    std::printf("\ntenant %s  %s, weight %u: %u sessions, %.3f s of GPU time, %s%s%s%s\n",
                Printable(tenant.name()).c_str(),
                tenant.latency_critical() ? "latency critical" : "best effort",
                std::max(tenant.weight(), 1u), tenant.sessions(), tenant.gpu_seconds(),
                BytesText(tenant.memory_leased()).c_str(), limited ? " of " : "",
                limited ? BytesText(tenant.memory_limit()).c_str() : "",
                NotLeased(tenant.memory_charged()).c_str());
    PrintHostMemory(tenant);
    if (tenant.awake_microseconds() != 0 || tenant.awake_seconds() != 0) {
      std::printf("  awake for %g ms after a message: %.3f s of processor time so far\n",
                  Milliseconds(tenant.awake_microseconds()), tenant.awake_seconds());
    }
  }
  const transport::SchedulerFigures& scheduler = reply.scheduler();
  std::printf("\nscheduler %s%s: %llu turns, %llu overran, %llu forced\n",
              Printable(scheduler.policy()).c_str(), scheduler.enabled() ? "" : " (off)",
              static_cast<unsigned long long>(scheduler.turns()),
              static_cast<unsigned long long>(scheduler.overruns()),
              static_cast<unsigned long long>(scheduler.forced()));
  PrintAwakeCores(reply);
  PrintShares(reply);
}

void PrintSeats(const transport::Session& session) {
  for (const transport::Seat& seat : session.seats()) {
    std::printf("  device %d: %s%s, %.3f s of GPU time, held back %llu times%s\n", seat.device(),
                seat.closed() ? "gate closed" : "gate open", seat.limited() ? " (takes turns)" : "",
                seat.gpu_seconds(), static_cast<unsigned long long>(seat.held()),
                seat.time_slice_groups() != 0 ? ", short time slice" : "");
    if (seat.stopped()) std::printf("    its worker does not answer: no turns until it does\n");
  }
}

void PrintAdmission(const transport::Admission& admission) {
  if (admission.descriptors() == 0) return;  // not for the caller to know, or an older server
  auto count = [](uint64_t value) { return static_cast<unsigned long long>(value); };
  std::printf("waiting for a session: %u connections, %u streams, of %u each; %llu closed\n",
              admission.connections(), admission.streams(), admission.waiting_limit(),
              count(admission.closed()));
  std::printf("refused: %llu streams, %llu calls, %llu sessions too fast, %llu beyond a limit\n",
              count(admission.refused_streams()), count(admission.refused_calls()),
              count(admission.refused_rate()), count(admission.refused_limit()));
  std::printf("descriptors: %u, of these %u for sessions, which may need %u now\n",
              admission.descriptors(), admission.session_descriptors(),
              admission.held_descriptors());
}

// How busy it is, and what NVIDIA's management library tells of it.
void PrintState(const transport::Device& device) {
  const transport::DeviceHealth& health = device.health();
  std::string text =
      "busy " + std::to_string(std::lround(device.busy() * 100)) + " % of the last minute";
  auto add = [&text](bool known, double value, const char* unit) {
    if (known) text += ", " + std::to_string(std::lround(value)) + " " + unit;
  };
  add(health.has_power_watts(), health.power_watts(), "W");
  add(health.has_temperature_celsius(), health.temperature_celsius(), "°C");
  add(health.has_sm_clock_mhz(), health.sm_clock_mhz(), "MHz");
  add(health.has_ecc_uncorrected() && health.ecc_uncorrected() != 0,
      static_cast<double>(health.ecc_uncorrected()), "errors of memory that were not corrected");
  for (const std::string& reason : health.throttling().reasons()) {
    text += ", " + (reason == "gpu_idle" ? "idle" : "slowed: " + Printable(reason));
  }
  if (health.xids().count() != 0) text += ", last Xid " + std::to_string(health.xids().last());
  std::printf("  %s\n", text.c_str());
}

void PrintPromised(const transport::Device& device) {
  if (device.promised() == 0) return;
  std::printf("  %s declared by sessions, of it %s unused and kept for them\n",
              BytesText(device.promised()).c_str(), BytesText(device.promised_unused()).c_str());
}

// How much memory a session declared, if it did.
std::string PromisedText(const transport::Session& session) {
  uint64_t promised = 0;
  for (const transport::SessionMemory& memory : session.memory()) promised += memory.promised();
  return promised == 0 ? "" : ", " + BytesText(promised) + " declared and kept for it";
}

void PrintWithdrawn(const transport::Daemon& daemon) {
  if (!daemon.has_withdrawn()) return;
  const transport::PoolWithdrawal& told = daemon.withdrawn();
  const std::string by = told.by().empty() ? "" : " by " + Printable(told.by());
  std::string then = told.drain() ? "; its sessions move away or end by themselves" : "";
  if (told.seconds() != 0) then = "; what runs is ended in " + std::to_string(told.left()) + " s";
  std::printf("%s in the pool%s: no new sessions are placed here%s; longwire status --pool\n",
              told.drain() ? "drained" : "cordoned", by.c_str(), then.c_str());
}

void PrintDevice(const transport::Device& device) {
  std::printf("\ndevice %d  %s  (keeper %d)%s\n", device.ordinal(),
              Printable(device.name()).c_str(), device.keeper_pid(),
              device.cordoned() ? ", cordoned: it gets no new sessions" : "");
  PrintState(device);
  std::printf("  memory %s: %s leased (most ever %s), %s idle, %s can be lent\n",
              BytesText(device.total()).c_str(), BytesText(device.leased()).c_str(),
              BytesText(device.leased_peak()).c_str(), BytesText(device.idle()).c_str(),
              BytesText(device.lendable()).c_str());
  std::printf("  %s more of sessions, %s of contexts and others\n",
              BytesText(device.charged()).c_str(), BytesText(device.others()).c_str());
  PrintPromised(device);
}

void PrintModuleCache(const transport::ModuleCache& modules) {
  if (modules.limit() == 0) return;
  std::printf("module cache: %llu images, %s of %s; %llu known, %llu not; %s not sent\n",
              static_cast<unsigned long long>(modules.images()), BytesText(modules.bytes()).c_str(),
              BytesText(modules.limit()).c_str(), static_cast<unsigned long long>(modules.hits()),
              static_cast<unsigned long long>(modules.misses()),
              BytesText(modules.saved()).c_str());
}

void PrintText(const std::string& server, const transport::InspectReply& reply) {
  const transport::Daemon& daemon = reply.daemon();
  std::printf("longwired %s at %s (host %s, pid %u), up %s\n", Printable(daemon.version()).c_str(),
              server.c_str(), Printable(daemon.host()).c_str(), daemon.pid(),
              SecondsText(daemon.uptime_seconds()).c_str());
  std::printf("driver %s\n", Printable(daemon.driver()).c_str());
  if (!daemon.walls().empty()) {
    std::printf("walls %s%s%s\n", Printable(daemon.walls()).c_str(),
                daemon.walls_missing().empty() ? "" : "; not here: ",
                Printable(daemon.walls_missing()).c_str());
  }
  std::printf("sessions: %d now%s, %llu opened, %llu refused\n", reply.sessions_size(),
              reply.other_tenants_left_out() ? " of your tenant" : "",
              static_cast<unsigned long long>(daemon.sessions_opened()),
              static_cast<unsigned long long>(daemon.sessions_failed()));
  PrintAdmission(daemon.admission());
  for (const std::string& sentence : daemon.unset_limits()) {
    std::printf("no limit set: %s\n", Printable(sentence).c_str());
  }
  if (daemon.draining()) std::printf("draining: no new sessions are opened\n");
  PrintWithdrawn(daemon);
  PrintModuleCache(daemon.module_cache());
  if (!daemon.warden_problem().empty()) {
    std::printf("problem: %s\n", Printable(daemon.warden_problem()).c_str());
  }
  for (const transport::Device& device : reply.devices()) PrintDevice(device);
  PrintTenants(reply);
  for (const transport::SuspendedSession& one : reply.suspended()) {
    std::printf(
        "\nsession %llu  %s\n  suspended in %s (%s); it ends if it is not restored within %s\n"
        "  tenant %s, identity %s\n",
        static_cast<unsigned long long>(one.id()), Printable(one.program()).c_str(),
        Printable(one.file()).c_str(), BytesText(one.bytes()).c_str(),
        SecondsText(one.seconds_left()).c_str(), Printable(one.tenant()).c_str(),
        Printable(one.identity()).c_str());
  }
  for (const transport::Session& session : reply.sessions()) {
    std::printf("\nsession %llu  %s\n", static_cast<unsigned long long>(session.id()),
                Printable(session.program()).c_str());
    std::printf("  tenant %s, identity %s\n", Printable(session.tenant()).c_str(),
                Printable(session.identity()).c_str());
    std::printf("  client %s pid %u, %s%s\n", Printable(session.client_host()).c_str(),
                session.client_pid(), Printable(session.peer()).c_str(),
                session.local() ? ", local socket" : "");
    if (!session.program_id().empty()) {
      std::printf("  program %s, which has sessions at other servers, too\n",
                  Printable(session.program_id()).c_str());
    }
    if (!session.moves().empty()) std::printf("  %s\n", Printable(session.moves()).c_str());
    std::printf("  worker %d%s, keeper %s, %s leased, %s not leased%s, for %s\n",
                session.worker_pid(), session.warm() ? " (was warm)" : "", PidList(session).c_str(),
                BytesText(session.leased()).c_str(), BytesText(ChargedTo(session)).c_str(),
                PromisedText(session).c_str(), SecondsText(session.seconds()).c_str());
    std::printf("  %s of the host's memory held for it\n",
                BytesText(session.host_memory()).c_str());
    std::printf("  up %s in %llu messages, down %s in %llu messages\n",
                BytesText(session.bytes_up()).c_str(),
                static_cast<unsigned long long>(session.messages_up()),
                BytesText(session.bytes_down()).c_str(),
                static_cast<unsigned long long>(session.messages_down()));
    PrintSeats(session);
    PrintAwake(session);
  }
}

int Status(bool json, bool pool, bool programs) {
  ServerOptions options;
  FindServer(&options);
  transport::PrepareProcess();
  std::string sentence;
  if (programs) return ProgramsStatus(options, json);
  Operator server(options, Operator::Prefers::kNetwork);
  if (pool) return PoolStatus(server, json);
  transport::InspectReply reply;
  if (!server.Inspect({}, &reply, &sentence)) {
    std::fprintf(stderr, "longwire status: %s\n", sentence.c_str());
    return 1;
  }
  if (json) {
    std::puts(StatusJson(server.name(), reply).c_str());
  } else {
    PrintText(server.name(), reply);
  }
  return reply.daemon().warden_problem().empty() ? 0 : 1;
}

}  // namespace

void AddStatus(CommandLine& line) {
  auto json = std::make_shared<bool>(), pool = std::make_shared<bool>();
  auto programs = std::make_shared<bool>();
  CLI::App& command = line.Add(nullptr, "status", "a server's devices, memory and sessions",
                               [=] { return Status(*json, *pool, *programs); });
  auto* of_pool = command.add_flag("--pool", *pool,
                                   "all hosts of the pool that the server is in, and who waits");
  command
      .add_flag("--programs", *programs,
                "of all servers in the list: programs that have devices of several, each with "
                "its sessions")
      ->excludes(of_pool);
  command.add_flag("--json", *json, "the same for programs");
  AddConnection(command, Reach::kNetworkAndLocal);
  command.footer(
      std::string(kOperatorHelp) +
      "The exit status is 0 if the server answered and its warden too (with --pool: if it "
      "is in the pool, and there is a host that places sessions), 1 if not, 2 if this "
      "command was called wrongly.");
}

}  // namespace longwire::cli
