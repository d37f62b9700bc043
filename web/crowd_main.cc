// web_crowd SOCKET DEVICES SESSIONS [PROGRAM]: answers at a control socket as a daemon with those
// sessions would, until it is killed. PROGRAM: the name of the first session's program.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <span>

#include "server/daemon/access/control_client.h"
#include "web/crowd.h"
#include "wire/socket.h"

namespace longwire::web {
namespace {

constexpr size_t kPartBytes = 128 << 10;
constexpr int kTenants = 10;

void Send(int socket, std::string_view text) {
  wire::SendMessage(socket, std::as_bytes(std::span(text)));
}

void AddTenants(int second, transport::InspectReply* reply) {
  for (int i = 0; i < kTenants; ++i) {
    transport::TenantFigures* tenant = reply->add_tenants();
    tenant->set_name("tenant-" + std::to_string(i));
    tenant->set_share_due(0.1);
    tenant->set_share_had(reply->sessions().empty() ? 0 : 0.02 * i);
    tenant->set_memory_limit(i == 0 ? UINT64_MAX : 200ULL << 30);
    for (const transport::Session& session : reply->sessions()) {
      if (session.tenant() != tenant->name()) continue;
      tenant->set_sessions(tenant->sessions() + 1);
      tenant->set_memory_leased(tenant->memory_leased() + session.memory(0).leased());
    }
  }
  transport::IdentityFigures* stranger = reply->add_identities();
  stranger->set_identity("stranger@example.org");
  stranger->set_refused(static_cast<uint64_t>(second / 5));
}

void AddLatency(int second, transport::InspectReply* reply) {
  transport::Latency* latency = reply->add_latencies();
  latency->set_of("session opening");
  const uint64_t each = 10 + static_cast<uint64_t>(second);
  for (double bound : {0.005, 0.025, 0.1, 0.5, 2.5}) {
    latency->add_bounds(bound);
    latency->add_counts(bound < 0.1 ? each : each / 10);
  }
  latency->add_counts(0);
}

// Every tenth second a session comes or goes.
transport::InspectReply ReplyAt(int second, int devices, int sessions, const char* program) {
  const int present = sessions == 0 ? 0 : sessions - second / 10 % 2;
  transport::InspectReply reply = Crowd(devices, present).Reply(second);
  AddTenants(second, &reply);
  AddLatency(second, &reply);
  if (sessions != 0) Crowd::AddPool(&reply);
  if (program != nullptr && present > 0) reply.mutable_sessions(0)->set_program(program);
  return reply;
}

int Main(int count, char** arguments) {
  if (count < 4) return 2;
  signal(SIGPIPE, SIG_IGN);
  const wire::Descriptor listener = wire::ListenLocal(arguments[1]);
  if (!listener.valid()) return 1;
  const int devices = std::atoi(arguments[2]), sessions = std::atoi(arguments[3]);
  const char* program = count > 4 ? arguments[4] : nullptr;
  const std::time_t began = std::time(nullptr);
  std::puts("READY");
  std::fflush(stdout);
  while (true) {
    const wire::Descriptor socket = wire::AcceptLocal(listener.get());
    if (!socket.valid() || !wire::ReceiveMessage(socket.get(), std::chrono::seconds(1))) continue;
    transport::ControlReply reply;
    const int second = static_cast<int>(std::time(nullptr) - began) + 1;
    *reply.mutable_inspect() = ReplyAt(second, devices, sessions, program);
    const std::string bytes = reply.SerializeAsString();
    Send(socket.get(), std::string(daemon::kReplyWord) + std::to_string(bytes.size()) + "\n");
    for (size_t at = 0; at < bytes.size(); at += kPartBytes) {
      Send(socket.get(), std::string_view(bytes).substr(at, kPartBytes));
    }
  }
}

}  // namespace
}  // namespace longwire::web

int main(int count, char** arguments) { return longwire::web::Main(count, arguments); }
