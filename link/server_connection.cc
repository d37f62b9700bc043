#include "link/server_connection.h"

#include <algorithm>

#include "link/transport/grpc_setup.h"
#include "link/transport/tls_probe.h"

namespace longwire::link {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kIdleChannels = 12;  // a session with its lanes, and a few
// A refused connection is tried again for this long: the server may just be starting.
constexpr std::chrono::milliseconds kRefusedPatience{800};
// Finding out why a handshake fails takes a few round trips.
constexpr std::chrono::milliseconds kDiagnosisPatience{1000};

gpr_timespec After(Clock::duration time) {
  int64_t nanoseconds = std::chrono::duration_cast<std::chrono::nanoseconds>(time).count();
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                      gpr_time_from_nanos(std::max<int64_t>(nanoseconds, 0), GPR_TIMESPAN));
}

// gRPC tells why a connection failed only in the status of a call.
grpc::Status ProbeStatus(const std::shared_ptr<grpc::Channel>& channel) {
  grpc::ClientContext context;
  context.set_deadline(After(std::chrono::milliseconds(200)));
  transport::InspectRequest request;
  transport::InspectReply reply;
  return transport::Transport::NewStub(channel)->Inspect(&context, request, &reply);
}

std::string NothingListens(const std::string& server) {
  return "nothing listens at " + server + "; is longwired running there, and is the port right?";
}

// The last and most telling part of gRPC's chain of reasons.
std::string LastReason(const std::string& message) {
  size_t colon = message.rfind(": ");
  return colon == std::string::npos ? message : message.substr(colon + 2);
}

// Nobody has looked at it since it was given back; one look sees that the server closed it.
bool IsStillOpen(grpc::Channel& channel) {
  channel.WaitForStateChange(GRPC_CHANNEL_READY, After({}));
  return channel.GetState(true) == GRPC_CHANNEL_READY;
}

}  // namespace

std::string ExplainStatus(const std::string& server, const grpc::Status& status) {
  std::string message = status.error_message();
  auto says = [&](const char* text) { return message.find(text) != std::string::npos; };
  if (status.error_code() == grpc::StatusCode::PERMISSION_DENIED) {
    return server + " refuses: " + message;
  }
  if (status.error_code() == grpc::StatusCode::UNIMPLEMENTED) {
    return "what answers at " + server + " speaks gRPC, but is not a Longwire server";
  }
  if (says("HTTP/2") || says("HTTP2") || says("SETTINGS") || says("http2") || says("http1")) {
    return "what answers at " + server + " is not a Longwire server; is the port right?";
  }
  if (says("Connection refused")) return NothingListens(server);
  if (says("DNS") || says("resol")) {
    return "the host name of " + server + " is not known";
  }
  if (status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED || says("imeout")) {
    return server + " does not answer; is the host up, and does a firewall drop the port?";
  }
  if (says("Socket closed") || says("Connection reset")) {
    return server + " closed the connection; is it a Longwire server, and is the port right?";
  }
  return "no connection to " + server + ": " + LastReason(message);
}

bool WaitUntilReady(const ServerChannel& server, Clock::time_point deadline,
                    std::string* sentence) {
  auto started = Clock::now();
  while (true) {
    grpc_connectivity_state state = server.channel->GetState(true);
    if (state == GRPC_CHANNEL_READY) return true;
    if (state == GRPC_CHANNEL_TRANSIENT_FAILURE && sentence != nullptr) {
      auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
      *sentence = transport::DiagnoseTls(server.address, server.tls.get(),
                                         std::min(left, kDiagnosisPatience));
      if (!sentence->empty()) return false;
    }
    auto now = Clock::now();
    bool refused = state == GRPC_CHANNEL_TRANSIENT_FAILURE && now - started > kRefusedPatience;
    if (refused || now >= deadline) {
      if (sentence == nullptr) return false;
      grpc::Status status(grpc::StatusCode::DEADLINE_EXCEEDED, "");
      if (state == GRPC_CHANNEL_TRANSIENT_FAILURE) status = ProbeStatus(server.channel);
      if (status.ok()) return true;
      if (transport::NobodyListens(server.address, kDiagnosisPatience)) {
        *sentence = NothingListens(server.server);
        return false;
      }
      *sentence = ExplainStatus(server.server, status);
      return false;
    }
    auto wait = std::min<Clock::duration>(deadline - now, kRefusedPatience);
    server.channel->WaitForStateChange(state, After(wait));
  }
}

std::optional<ServerChannel> ServerConnection::TakeIdle(const std::string& fingerprint,
                                                        const std::string& server) {
  std::lock_guard lock(mutex_);
  for (size_t left = idle_.size(); left-- > 0;) {
    if (!server.empty() && idle_[left].server != server) continue;
    ServerChannel channel = std::move(idle_[left]);
    idle_.erase(idle_.begin() + static_cast<ptrdiff_t>(left));
    bool same = channel.tls == nullptr || channel.tls->own.fingerprint == fingerprint;
    if (same && IsStillOpen(*channel.channel)) return channel;
  }
  return std::nullopt;
}

std::optional<ServerChannel> ServerConnection::Take(std::chrono::milliseconds patience,
                                                    std::string* sentence) {
  std::shared_ptr<const transport::TlsMaterial> tls;
  if (!identity_.none()) {
    // Read each time: a certificate that was renewed in its place is used from now on.
    auto material = transport::LoadTls(identity_, transport::TlsRole::kClient, sentence);
    if (!material) return std::nullopt;
    tls = std::make_shared<const transport::TlsMaterial>(std::move(*material));
  }
  auto idle = TakeIdle(tls == nullptr ? "" : tls->own.fingerprint);
  if (idle) return idle;
  auto deadline = Clock::now() + patience;
  std::vector<ServerChannel> channels;
  for (const transport::Address& server : servers_) {
    auto channel = transport::OpenChannel(server.Text(), tls.get());
    channels.push_back({server.Text(), std::move(channel), server, tls, packing_});
    channels.back().channel->GetState(true);  // all connect at once
  }
  std::string reasons = problem_;
  for (ServerChannel& channel : channels) {
    std::string reason;
    if (WaitUntilReady(channel, deadline, &reason)) return std::move(channel);
    reasons += (reasons.empty() ? "" : "; ") + reason;
  }
  *sentence = reasons;
  return std::nullopt;
}

ServerChannel ServerConnection::Beside(const ServerChannel& other) {
  auto idle = TakeIdle(other.tls == nullptr ? "" : other.tls->own.fingerprint, other.server);
  if (idle) return *std::move(idle);
  ServerChannel made = other;
  made.channel = transport::OpenChannel(other.server, other.tls.get());
  return made;
}

void ServerConnection::GiveBack(ServerChannel channel) {
  if (channel.channel->GetState(false) != GRPC_CHANNEL_READY) return;
  std::lock_guard lock(mutex_);
  if (idle_.size() < kIdleChannels) idle_.push_back(std::move(channel));
}

}  // namespace longwire::link
