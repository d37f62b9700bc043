#include "server/daemon/bridges/bridges.h"

#include <atomic>
#include <cstring>

#include "base/printable.h"
#include "link/transport/grpc_setup.h"
#include "wire/switches.h"

namespace longwire::daemon {
namespace {

using transport::Log;
using transport::LogLevel;

// A firewall that drops packets is noticed after this.
constexpr std::chrono::milliseconds kConnectPatience{3000};

std::string TextOf(const void* bytes, size_t size) {
  return {static_cast<const char*>(bytes), size};
}

template <class Bytes>
bool Read(const std::string& text, Bytes* bytes) {
  if (text.size() != bytes->size()) return false;
  std::memcpy(bytes->data(), text.data(), text.size());
  return true;
}

// A worker that has ended needs no answer.
void Send(const ServerSession& session, const bridges::Answer& answer) {
  wire::Descriptor control = session.ControlSocket();
  if (control.valid()) (void)wire::SendMessage(control.get(), message::Pack(answer));
}

// Of its own session, and none of the session's own logs.
bool AreLanes(ServerSession& session, const bridges::Ask& ask) {
  return ask.first_lane != 0 && ask.lanes != 0 && ask.lanes <= session.lanes() &&
         ask.first_lane <= session.lanes() - ask.lanes;
}

bridges::Answer Offer(ServerSession& session, const bridges::Ask& ask) {
  bridges::Answer answer{ask.request, false, {}, 0, {}};
  auto secret = session.bridge_rights().Offer(ask.first_lane);
  if (!secret) return answer;
  const TokenHash digest = HashToken(*secret);
  answer.secret = TextOf(digest.data(), digest.size());
  answer.done = true;
  return answer;
}

bridges::Answer TicketFor(ServerSession& session, const bridges::Ask& ask) {
  bridges::Answer answer{ask.request, false, {}, 0, {}};
  TokenHash digest{};
  if (!Read(ask.secret, &digest)) return answer;
  auto ticket = session.bridge_rights().Ticket(ask.first_lane, ask.lanes, digest, Clock::now());
  if (!ticket) return answer;
  answer.secret = TextOf(ticket->data(), ticket->size());
  for (uint32_t i = 0; i < ask.lanes; ++i) {
    answer.epoch = std::max(answer.epoch, session.lane(ask.first_lane + i).epoch());
  }
  answer.done = true;
  return answer;
}

bridges::Answer State(ServerSession& session, const bridges::Ask& ask) {
  bridges::Answer answer{ask.request, true, {}, 0, {}};
  for (uint32_t i = 0; i < ask.lanes; ++i) {
    answer.done = answer.done && session.lane(ask.first_lane + i).joined();
  }
  return answer;
}

// The lanes of a bridge while they are connected, each by a thread of its own.
class Attempt {
 public:
  Attempt(std::shared_ptr<ServerSession> session, bridges::Ask ask, transport::TlsMaterial tls)
      : session_(std::move(session)), ask_(std::move(ask)), tls_(std::move(tls)) {
    left_ = ask_.lanes;
  }

  void Run(uint32_t index, const transport::Token& ticket, const transport::Token& offer) {
    std::string problem = "there is no way to it";
    const auto tls = tls_.certificate.empty() ? nullptr : &tls_;
    auto channel = transport::OpenChannel(ask_.address, tls);
    std::unique_ptr<transport::ClientStream> stream;
    if (channel->WaitForConnected(std::chrono::system_clock::now() + kConnectPatience)) {
      stream = transport::ClientStream::Connect(channel, kConnectPatience, transport::kTransfer);
    }
    if (stream != nullptr) {
      transport::Attach attach;
      attach.session = ask_.session;
      attach.token = ticket;
      attach.lane = ask_.far_lane + index;
      attach.offer = offer;
      problem = session_->lane(ask_.first_lane + index).Join(*stream, attach, ask_.epoch, [this] {
        Ended({});
      });
      stream->End(true);
    }
    if (!problem.empty()) Ended(problem);
  }

  // A lane is joined, or is not.
  void Ended(const std::string& problem) {
    if (!problem.empty() && !failed_.exchange(true)) problem_ = problem;
    if (left_.fetch_sub(1) != 1) return;
    session_->bridge_rights().EndConnecting();
    if (failed_.load()) {
      Log(LogLevel::kWarning, session_->subject(),
          "no bridge to " + base::Printable(ask_.address) + ": " + base::Printable(problem_));
      Send(*session_, {ask_.request, false, {}, 0, problem_});
    } else {
      Log(LogLevel::kInfo, session_->subject(),
          "has a bridge to " + base::Printable(ask_.address) + " of " + std::to_string(ask_.lanes) +
              " lanes");
      Send(*session_, {ask_.request, true, {}, 0, {}});
    }
  }

 private:
  const std::shared_ptr<ServerSession> session_;
  const bridges::Ask ask_;
  const transport::TlsMaterial tls_;
  std::atomic<uint32_t> left_{0};
  std::atomic<bool> failed_{false};
  std::string problem_;  // written by the first that fails, read by the last
};

}  // namespace

void SessionTable::set_bridges(OnAsked asked) {
  base::MutexLock lock(bridges_mutex_);
  bridges_ = std::move(asked);
}

void SessionTable::AskAboutBridges(uint64_t session, const bridges::Ask& ask) {
  base::MutexLock lock(bridges_mutex_);
  const std::shared_ptr<ServerSession> asking = Find(session);
  if (asking != nullptr && bridges_) bridges_(asking, ask);
}

Bridges::Bridges(SessionTable& table, AcceptLoop& loop) : table_(table), loop_(loop) {
  table.set_bridges(
      [this](const SessionPointer& session, const bridges::Ask& ask) { Asked(session, ask); });
}

void Bridges::Asked(const SessionPointer& session, const bridges::Ask& ask) {
  if (wire::IsSwitchedOff("bridges")) {
    Send(*session, {ask.request, false, {}, 0, "its operator has switched bridges off"});
    return;
  }
  if (!AreLanes(*session, ask) || session->client().local()) {
    Send(*session, {ask.request, false, {}, 0, "the session has no such lanes"});
    return;
  }
  switch (static_cast<bridges::Step>(ask.step)) {
    case bridges::Step::kOffer:
      return Send(*session, Offer(*session, ask));
    case bridges::Step::kTicket:
      return Send(*session, TicketFor(*session, ask));
    case bridges::Step::kState:
      return Send(*session, State(*session, ask));
    case bridges::Step::kConnect:
      return Connect(session, ask);
  }
  Send(*session, {ask.request, false, {}, 0, "the server does not know what is asked"});
}

void Bridges::Connect(const SessionPointer& session, const bridges::Ask& ask) {
  auto offer = session->bridge_rights().Offered(ask.first_lane);
  transport::Token ticket{};
  if (!offer || !Read(ask.secret, &ticket)) {
    Send(*session, {ask.request, false, {}, 0, "nothing was offered"});
    return;
  }
  if (!session->bridge_rights().BeginConnecting()) {
    Send(*session, {ask.request, false, {}, 0, "another bridge is being connected"});
    return;
  }
  auto attempt = std::make_shared<Attempt>(session, ask, loop_.Material());
  for (uint32_t i = 0; i < ask.lanes; ++i) {
    auto run = [attempt, i, ticket, offer = *offer] { attempt->Run(i, ticket, offer); };
    if (!loop_.Spawn(run)) attempt->Ended("the server has no thread for it");
  }
}

}  // namespace longwire::daemon
