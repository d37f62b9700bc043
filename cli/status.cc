// longwire status: what a server has and who uses it.
#include <cstdio>

#include "cli/connect.h"
#include "cli/text.h"
#include "link/transport/grpc_setup.h"

namespace longwire::cli {
namespace {

constexpr const char* kHelp =
    R"(longwire status: a server's devices, memory and sessions.

  longwire status [OPTIONS] [--json]

The exit status is 0 if the server answered and its warden too, else 1.
)";

std::string PidList(const transport::Session& session) {
  std::string list;
  for (int pid : session.keeper_pids()) list += (list.empty() ? "" : ",") + std::to_string(pid);
  return list;
}

void PrintText(const std::string& server, const transport::InspectReply& reply) {
  const transport::Daemon& daemon = reply.daemon();
  std::printf("longwired %s at %s (host %s, pid %u), up %s\n", Printable(daemon.version()).c_str(),
              server.c_str(), Printable(daemon.host()).c_str(), daemon.pid(),
              SecondsText(daemon.uptime_seconds()).c_str());
  std::printf("driver %s\n", Printable(daemon.driver()).c_str());
  std::printf("sessions: %d now, %llu opened, %llu refused\n", reply.sessions_size(),
              static_cast<unsigned long long>(daemon.sessions_opened()),
              static_cast<unsigned long long>(daemon.sessions_failed()));
  if (!daemon.warden_problem().empty()) {
    std::printf("problem: %s\n", Printable(daemon.warden_problem()).c_str());
  }
  for (const transport::Device& device : reply.devices()) {
    std::printf("\ndevice %d  %s  (keeper %d)\n", device.ordinal(),
                Printable(device.name()).c_str(), device.keeper_pid());
    std::printf("  memory %s: %s leased (most ever %s), %s idle, %s can be lent\n",
                BytesText(device.total()).c_str(), BytesText(device.leased()).c_str(),
                BytesText(device.leased_peak()).c_str(), BytesText(device.idle()).c_str(),
                BytesText(device.lendable()).c_str());
  }
  for (const transport::Session& session : reply.sessions()) {
    std::printf("\nsession %llu  %s\n", static_cast<unsigned long long>(session.id()),
                Printable(session.program()).c_str());
    std::printf("  tenant %s, identity %s\n", Printable(session.tenant()).c_str(),
                Printable(session.identity()).c_str());
    std::printf("  client %s pid %u, %s%s\n", Printable(session.client_host()).c_str(),
                session.client_pid(), Printable(session.peer()).c_str(),
                session.local() ? ", local door" : "");
    std::printf("  worker %d%s, keeper %s, %s leased, for %s\n", session.worker_pid(),
                session.warm() ? " (was warm)" : "", PidList(session).c_str(),
                BytesText(session.leased()).c_str(), SecondsText(session.seconds()).c_str());
    std::printf("  up %s in %llu messages, down %s in %llu messages\n",
                BytesText(session.bytes_up()).c_str(),
                static_cast<unsigned long long>(session.messages_up()),
                BytesText(session.bytes_down()).c_str(),
                static_cast<unsigned long long>(session.messages_down()));
  }
}

void PrintJsonDevice(const transport::Device& device) {
  std::printf(
      "{\"ordinal\":%d,\"name\":%s,\"keeper_pid\":%d,\"total\":%llu,\"lendable\":%llu,"
      "\"leased\":%llu,\"leased_peak\":%llu,\"idle\":%llu}",
      device.ordinal(), JsonString(device.name()).c_str(), device.keeper_pid(),
      static_cast<unsigned long long>(device.total()),
      static_cast<unsigned long long>(device.lendable()),
      static_cast<unsigned long long>(device.leased()),
      static_cast<unsigned long long>(device.leased_peak()),
      static_cast<unsigned long long>(device.idle()));
}

void PrintJsonSession(const transport::Session& session) {
  std::printf(
      "{\"id\":%llu,\"program\":%s,\"client_host\":%s,\"client_pid\":%u,\"peer\":%s,"
      "\"tenant\":%s,\"identity\":%s,"
      "\"worker_pid\":%d,\"keeper_pids\":[%s],\"leased\":%llu,\"seconds\":%.3f,"
      "\"bytes_up\":%llu,\"bytes_down\":%llu,\"messages_up\":%llu,\"messages_down\":%llu,"
      "\"warm\":%s,\"local\":%s,\"epoch\":%u}",
      static_cast<unsigned long long>(session.id()), JsonString(session.program()).c_str(),
      JsonString(session.client_host()).c_str(), session.client_pid(),
      JsonString(session.peer()).c_str(), JsonString(session.tenant()).c_str(),
      JsonString(session.identity()).c_str(), session.worker_pid(), PidList(session).c_str(),
      static_cast<unsigned long long>(session.leased()), session.seconds(),
      static_cast<unsigned long long>(session.bytes_up()),
      static_cast<unsigned long long>(session.bytes_down()),
      static_cast<unsigned long long>(session.messages_up()),
      static_cast<unsigned long long>(session.messages_down()), session.warm() ? "true" : "false",
      session.local() ? "true" : "false", session.epoch());
}

void PrintJson(const std::string& server, const transport::InspectReply& reply) {
  const transport::Daemon& daemon = reply.daemon();
  std::printf(
      "{\"server\":%s,\"version\":%s,\"protocol\":%u,\"host\":%s,\"pid\":%u,"
      "\"uptime_seconds\":%.3f,\"driver\":%s,\"sessions_opened\":%llu,"
      "\"sessions_failed\":%llu,\"warden_problem\":%s,\"devices\":[",
      JsonString(server).c_str(), JsonString(daemon.version()).c_str(), daemon.protocol(),
      JsonString(daemon.host()).c_str(), daemon.pid(), daemon.uptime_seconds(),
      JsonString(daemon.driver()).c_str(),
      static_cast<unsigned long long>(daemon.sessions_opened()),
      static_cast<unsigned long long>(daemon.sessions_failed()),
      JsonString(daemon.warden_problem()).c_str());
  for (int i = 0; i < reply.devices_size(); ++i) {
    if (i != 0) std::printf(",");
    PrintJsonDevice(reply.devices(i));
  }
  std::printf("],\"sessions\":[");
  for (int i = 0; i < reply.sessions_size(); ++i) {
    if (i != 0) std::printf(",");
    PrintJsonSession(reply.sessions(i));
  }
  std::printf("]}\n");
}

}  // namespace

int Status(const Arguments& arguments) {
  ServerOptions options;
  if (!ParseServerOptions("status", arguments, "--json", &options.json, &options)) {
    return kUsageStatus;
  }
  if (options.help) {
    std::printf("%s%s", kHelp, kConnectionHelp);
    return 0;
  }
  transport::PrepareProcess();
  std::string sentence;
  auto server = ConnectTo(options, &sentence);
  transport::InspectReply reply;
  if (!server || !InspectServer(*server, &reply, &sentence)) {
    std::fprintf(stderr, "longwire status: %s\n", sentence.c_str());
    return 1;
  }
  options.json ? PrintJson(server->server, reply) : PrintText(server->server, reply);
  return reply.daemon().warden_problem().empty() ? 0 : 1;
}

}  // namespace longwire::cli
