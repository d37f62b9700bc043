#include "link/server_connection.h"

#include <algorithm>

#include "link/server_race.h"
#include "link/transport/grpc_setup.h"
#include "link/transport/tls_probe.h"

namespace longwire::link {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kIdleChannels = 12;  // a session with its lanes, and a few
// A refused connection is tried again for this long: the server may just be starting.
constexpr std::chrono::milliseconds kRefusedPatience{800};
// So is one that the server closed without a word: with too many that wait, it takes no more. A
// host so busy that few attempts fit into the time makes that many all the same.
constexpr std::chrono::milliseconds kBusyPatience{3000};
constexpr int kBusyAttempts = 4;
// Finding out why a handshake fails takes a few round trips.
constexpr std::chrono::milliseconds kDiagnosisPatience{1000};
constexpr std::chrono::milliseconds kAnswerPatience{4000};
// A cancelled attempt ends within this time.
constexpr std::chrono::milliseconds kGiveUpLook{100};

gpr_timespec After(Clock::duration time) {
  int64_t nanoseconds = std::chrono::duration_cast<std::chrono::nanoseconds>(time).count();
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                      gpr_time_from_nanos(std::max<int64_t>(nanoseconds, 0), GPR_TIMESPAN));
}

// gRPC reports why a connection failed only in the status of a call.
grpc::Status ProbeStatus(const std::shared_ptr<grpc::Channel>& channel) {
  grpc::ClientContext context;
  context.set_deadline(After(std::chrono::milliseconds(200)));
  transport::InspectRequest request;
  transport::InspectReply reply;
  return transport::Transport::NewStub(channel)->Inspect(&context, request, &reply);
}

// gRPC's text differs by the step of the handshake that timed out.
bool IsSilence(const grpc::Status& status) {
  const std::string& message = status.error_message();
  return status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED ||
         message.find("handshaker shutdown") != std::string::npos ||
         message.find("imeout") != std::string::npos ||
         message.find("imed out") != std::string::npos;
}

std::string NothingListens(const std::string& server) {
  return "nothing listens at " + server + "; is longwired running there, and is the port right?";
}

// The last and most specific part of gRPC's chain of reasons.
std::string LastReason(const std::string& message) {
  size_t colon = message.rfind(": ");
  return colon == std::string::npos ? message : message.substr(colon + 2);
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
  if (IsSilence(status)) {
    return server + " does not answer; is the host up, and does a firewall drop the port?";
  }
  if (says("Socket closed") || says("Connection reset")) {
    return server + " closed the connection; is it a Longwire server, and is the port right?";
  }
  return "no connection to " + server + ": " + LastReason(message);
}

namespace {

// The sentence about a connection that is not up after `time`. `passing`: what an earlier attempt
// met, for which the last one had no time.
std::string WhyNotReady(const ServerChannel& server, grpc_connectivity_state state,
                        Clock::duration time, const std::string& passing) {
  grpc::Status status(grpc::StatusCode::DEADLINE_EXCEEDED, "");
  if (state == GRPC_CHANNEL_TRANSIENT_FAILURE) status = ProbeStatus(server.channel);
  if (status.ok()) return {};
  switch (transport::TryTcp(server.address, kDiagnosisPatience)) {
    case transport::TcpOutcome::kRefused:
      return NothingListens(server.server);
    case transport::TcpOutcome::kUnreachable:
      return "there is no route to " + server.server +
             " from here: the address is wrong, or the host is down";
    case transport::TcpOutcome::kTimedOut:
      return NoAnswerFrom(server.server, time);
    case transport::TcpOutcome::kUnknownName:
      return "the host name of " + server.server + " is not known";
    case transport::TcpOutcome::kConnected:
      break;
  }
  if (!passing.empty()) return passing;
  return IsSilence(status) ? server.server +
                                 " accepts connections but does not answer; is longwired there "
                                 "stopped, or something else at that port?"
                           : ExplainStatus(server.server, status);
}

}  // namespace

bool WaitUntilReady(const ServerChannel& server, Clock::time_point deadline, std::string* sentence,
                    const std::atomic<bool>* given_up) {
  base::AssertNoRankedLockHeld();
  auto started = Clock::now();
  int closed = 0;       // attempts that the server closed without a word
  std::string passing;  // the sentence about them
  while (given_up == nullptr || !given_up->load()) {
    grpc_connectivity_state state = server.channel->GetState(true);
    if (state == GRPC_CHANNEL_READY) {
      // What an earlier attempt met is over.
      if (sentence != nullptr) sentence->clear();
      return true;
    }
    transport::TlsDiagnosis found;
    if (state == GRPC_CHANNEL_TRANSIENT_FAILURE && sentence != nullptr) {
      auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
      found = transport::DiagnoseTls(server.address, server.tls.get(),
                                     std::min(left, kDiagnosisPatience));
      *sentence = found.sentence;
      if (!sentence->empty() && !found.passing) return false;
      if (found.passing) {
        ++closed;
        passing = found.sentence;
      }
    }
    auto now = Clock::now();
    bool refused = state == GRPC_CHANNEL_TRANSIENT_FAILURE &&
                   now - started > (closed > 0 ? kBusyPatience : kRefusedPatience) &&
                   (!found.passing || closed >= kBusyAttempts);
    if (refused || now >= deadline) {
      if (sentence == nullptr) return false;
      if (!found.passing) *sentence = WhyNotReady(server, state, now - started, passing);
      return sentence->empty();
    }
    auto look = given_up == nullptr ? kRefusedPatience : kGiveUpLook;
    server.channel->WaitForStateChange(state,
                                       After(std::min<Clock::duration>(deadline - now, look)));
  }
  return false;
}

ServerConnection::~ServerConnection() {
  void* tag = nullptr;
  bool ok = false;
  looks_.Shutdown();
  while (looks_.Next(&tag, &ok)) {
  }
}

// The connection was not polled while idle; one poll notices that the server has closed it. gRPC
// reports the end of such a watch when its timers are run next, which may be a quarter of a second
// later, so it is not waited for.
bool ServerConnection::IsStillOpen(grpc::Channel& channel) {
  void* tag = nullptr;
  bool ok = false;
  channel.NotifyOnStateChange(GRPC_CHANNEL_READY, After({}), &looks_, nullptr);
  while (looks_.AsyncNext(&tag, &ok, After({})) == grpc::CompletionQueue::GOT_EVENT) {
  }
  return channel.GetState(true) == GRPC_CHANNEL_READY;
}

std::optional<ServerChannel> ServerConnection::TakeIdle(const std::string& fingerprint,
                                                        const std::string& server) {
  base::MutexLock lock(mutex_);
  for (size_t left = idle_.size(); left-- > 0;) {
    if (idle_[left].server != server) continue;
    ServerChannel channel = std::move(idle_[left]);
    idle_.erase(idle_.begin() + static_cast<ptrdiff_t>(left));
    bool same = channel.tls == nullptr || channel.tls->own.fingerprint == fingerprint;
    if (same && IsStillOpen(*channel.channel)) return channel;
  }
  return std::nullopt;
}

namespace {

// With several servers, one that accepts connections but does not answer is skipped.
bool Answers(const ServerChannel& server, Contender& contender, std::string* sentence) {
  grpc::ClientContext context;
  context.set_deadline(After(kAnswerPatience));
  contender.set_on_give_up([&context] { context.TryCancel(); });
  transport::InspectRequest request;
  request.set_client_version(LONGWIRE_VERSION);
  transport::InspectReply reply;
  grpc::Status status =
      transport::Transport::NewStub(server.channel)->Inspect(&context, request, &reply);
  contender.set_on_give_up(nullptr);
  if (!status.ok()) *sentence = ExplainStatus(server.server, status);
  return status.ok();
}

}  // namespace

std::vector<transport::Address> ServerConnection::Order() {
  std::vector<transport::Address> order = servers_;
  base::MutexLock lock(mutex_);
  if (idle_.empty()) return order;
  const std::string& last = idle_.back().server;
  std::stable_partition(order.begin(), order.end(),
                        [&](const transport::Address& server) { return server.Text() == last; });
  return order;
}

bool ServerConnection::LoadIdentity(std::shared_ptr<const transport::TlsMaterial>* tls,
                                    std::string* sentence) {
  if (identity_.none()) return true;
  // Read each time: a certificate that was renewed in its place is used from now on.
  auto material = transport::LoadTls(identity_, transport::TlsRole::kClient, sentence);
  if (material) *tls = std::make_shared<const transport::TlsMaterial>(std::move(*material));
  return material.has_value();
}

std::optional<ServerChannel> ServerConnection::To(const std::string& server,
                                                  std::string* sentence) {
  // One of the list, or where a pool has placed a session.
  auto found = transport::ParseAddress(server, sentence);
  if (!found) return std::nullopt;
  std::shared_ptr<const transport::TlsMaterial> tls;
  if (!LoadIdentity(&tls, sentence)) return std::nullopt;
  auto idle = TakeIdle(tls == nullptr ? "" : tls->own.fingerprint, server);
  if (idle) return idle;
  auto channel = transport::OpenChannel(server, tls.get());
  return ServerChannel{server, std::move(channel), *found, tls, packing_};
}

std::optional<ServerChannel> ServerConnection::Reach(const transport::Address& server,
                                                     Clock::time_point deadline,
                                                     const std::atomic<bool>& given_up,
                                                     std::string* sentence) {
  std::shared_ptr<const transport::TlsMaterial> tls;
  if (!LoadIdentity(&tls, sentence)) return std::nullopt;
  auto idle = TakeIdle(tls == nullptr ? "" : tls->own.fingerprint, server.Text());
  if (idle) return idle;
  auto channel = transport::OpenChannel(server.Text(), tls.get());
  ServerChannel made{server.Text(), std::move(channel), server, tls, packing_};
  if (WaitUntilReady(made, deadline, sentence, &given_up)) return made;
  return std::nullopt;
}

std::optional<ServerChannel> ServerConnection::Take(std::chrono::milliseconds patience,
                                                    std::string* sentence) {
  if (!problem_.empty()) {
    *sentence = problem_;
    return std::nullopt;
  }
  auto deadline = Clock::now() + patience;
  std::vector<transport::Address> order = Order();
  std::vector<std::optional<ServerChannel>> made(order.size());
  ServerRace race(order, [&](size_t place, Contender& contender, std::string* reason) {
    made[place] = Reach(contender.address(), deadline, contender.given_up(), reason);
    if (!made[place] || order.size() == 1) return made[place].has_value();
    contender.Connected();
    return Answers(*made[place], contender, reason);
  });
  auto first = race.Run(deadline + kDiagnosisPatience, sentence);
  if (!first) return std::nullopt;
  return std::move(made[*first]);
}

ServerChannel ServerConnection::Beside(const ServerChannel& other) {
  auto idle = TakeIdle(other.tls == nullptr ? "" : other.tls->own.fingerprint, other.server);
  if (idle) return *std::move(idle);
  ServerChannel made = other;
  made.channel = transport::OpenChannel(other.server, other.tls.get());
  return made;
}

void ServerConnection::NotePlace(const void* who, SessionPlace place) {
  base::MutexLock lock(mutex_);
  places_[who] = std::move(place);
}

void ServerConnection::ForgetPlace(const void* who) {
  base::MutexLock lock(mutex_);
  places_.erase(who);
}

std::vector<ServerConnection::SessionPlace> ServerConnection::PlacesOf(pid_t program) {
  base::MutexLock lock(mutex_);
  std::vector<SessionPlace> places;
  for (const auto& [who, place] : places_) {
    if (place.program == program) places.push_back(place);
  }
  return places;
}

void ServerConnection::GiveBack(ServerChannel channel) {
  if (channel.channel->GetState(false) != GRPC_CHANNEL_READY) return;
  base::MutexLock lock(mutex_);
  if (idle_.size() < kIdleChannels) idle_.push_back(std::move(channel));
}

}  // namespace longwire::link
