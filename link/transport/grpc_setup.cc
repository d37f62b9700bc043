#include "link/transport/grpc_setup.h"

#include <absl/synchronization/mutex.h>
#include <malloc.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

#include "link/transport/frame.h"
#include "link/transport/timer_slack.h"
#include "wire/switches.h"

namespace longwire::transport {
namespace {

// Both ends notice a dead connection within the sum of these, plus the timers' slack: a session
// that is to resume then still has most of its grace.
constexpr int kKeepaliveMs = 8'000;
constexpr int kKeepaliveTimeoutMs = 4'000;
// Frames are smaller; an OpenReply is at most wire::kMaxOpenBytes.
constexpr int kMaxReceiveBytes = static_cast<int>(2 * wire::kMaxBatchBytes);
constexpr int kLookAheadBytes = 8 << 20;
constexpr int kHttp2FrameBytes = 1 << 20;
constexpr int kMaxStreams = 3;
// A host that drops packets is given up after this; a refusal is known at once.
constexpr int kConnectMs = 3'000;
// How soon a client without a session sees that its server is stopping.
constexpr char kIdleLookMs[] = "5000";

bool IsForeignSetting(std::string_view name) {
  if (name.starts_with("GRPC_")) return true;
  for (std::string_view proxy : {"http_proxy", "https_proxy", "grpc_proxy", "no_proxy",
                                 "no_grpc_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"}) {
    if (name == proxy) return true;
  }
  return false;
}

// gRPC's default engine has one epoll set for the whole process, on which one thread at a time
// waits: a thread that polls for its own message gets it only after that thread has woken up. With
// this engine each thread polls its own connections (docs/decisions/0018); idle ones are polled now
// and then. LONGWIRE_DISABLE=own-polling selects the default engine.
void PollOwnConnections() {
  if (wire::IsSwitchedOff("own-polling")) return;
  setenv("GRPC_POLL_STRATEGY", "poll", 1);
  setenv("GRPC_CLIENT_CHANNEL_BACKUP_POLL_INTERVAL_MS", kIdleLookMs, 1);
}

// Each thread that meets another one in malloc takes 64 MiB of addresses: with a limit on them
// (ulimit -v) two such threads more would leave none for a session's rings.
void SpareAddresses() {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    mallopt(M_ARENA_MAX, 1);
  }
}

}  // namespace

void PrepareProcess() {
  SpareAddresses();
  std::vector<std::string> foreign;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    std::string_view name = std::string_view(*entry).substr(0, std::strcspn(*entry, "="));
    if (IsForeignSetting(name)) foreign.emplace_back(name);
  }
  for (const std::string& name : foreign) unsetenv(name.c_str());
  // gRPC's own log would go to our standard error in its own format; what matters is in statuses.
  setenv("GRPC_VERBOSITY", "NONE", 1);
  PollOwnConnections();
  StartGrpcWithSlack();
  // Otherwise every large slice is given back to the kernel and faulted in again: twice the time.
  mallopt(M_MMAP_THRESHOLD, 64 << 20);
  mallopt(M_TRIM_THRESHOLD, 256 << 20);
  // Costs a fifth of gRPC's instructions per message.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  signal(SIGPIPE, SIG_IGN);
}

void SetServerOptions(grpc::ServerBuilder* builder) {
  builder->SetMaxReceiveMessageSize(kMaxReceiveBytes);
  builder->SetMaxSendMessageSize(kMaxReceiveBytes);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMs);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMs);
  builder->AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  builder->AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 5'000);
  builder->AddChannelArgument(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, kLookAheadBytes);
  builder->AddChannelArgument(GRPC_ARG_HTTP2_MAX_FRAME_SIZE, kHttp2FrameBytes);
  // Two daemons on one port would share its connections by chance.
  builder->AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  // A link has a connection for each log and lane: the call that opens, its stream, and one that
  // resumes it. More beside a session would be memory that nobody counts: what streams send is kept
  // before anybody has asked who they are.
  builder->AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMaxStreams);
  // A connection that does not begin to speak HTTP/2 is dropped after this.
  builder->AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, 5'000);
}

std::shared_ptr<grpc::Channel> OpenChannel(const std::string& address, const TlsMaterial* tls) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMaxReceiveBytes);
  arguments.SetMaxSendMessageSize(kMaxReceiveBytes);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMs);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  arguments.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, kLookAheadBytes);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_FRAME_SIZE, kHttp2FrameBytes);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, kConnectMs);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1'000);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  auto credentials = tls == nullptr ? grpc::InsecureChannelCredentials() : ClientCredentials(*tls);
  return grpc::CreateCustomChannel(address, credentials, arguments);
}

}  // namespace longwire::transport
