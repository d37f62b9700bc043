// Execute and Transfer: who attaches to which lane of which session, and what happens when the
// connection ends.
#include "link/transport/codes.h"
#include "link/transport/log.h"
#include "server/daemon/accept_loop.h"

namespace longwire::daemon {
namespace {

using transport::Log;
using transport::LogLevel;
using transport::MessageStream;
using Outcome = transport::StreamPump::Outcome;

// A connection that does not attach in this time is dropped.
constexpr std::chrono::seconds kAttachPatience{5};
// Pings allowed before an attach, for measuring.
constexpr int kMaxPings = 4096;

// The last frame and the end of a stream without a session.
void Refuse(transport::ServerStream& stream, const Peer& peer, const std::string& sentence) {
  Log(LogLevel::kWarning, peer.subject(),
      "a stream from " + peer.address + " was refused: " + sentence);
  std::string body =
      transport::EncodeClosed({static_cast<uint32_t>(transport::kLaunchFailed), sentence});
  transport::FrameHeader header;
  header.flags = transport::kFrameClosed;
  stream.StartWrite(header, std::as_bytes(std::span(body)), nullptr);
  while (true) {
    auto event = stream.Wait(Clock::now() + kAttachPatience);
    if (event != MessageStream::Event::kRead) break;
  }
  stream.set_status({grpc::StatusCode::UNAUTHENTICATED, sentence});
  stream.End(false);
}

// Waits for the attach, answering pings. False when it does not come.
bool AwaitAttach(transport::ServerStream& stream, transport::Attach* attach, uint32_t* epoch) {
  for (int pings = 0; pings < kMaxPings; ++pings) {
    stream.StartRead();
    if (stream.Wait(Clock::now() + kAttachPatience) != MessageStream::Event::kRead) return false;
    const transport::ReceivedFrame& frame = stream.received();
    std::string body = ControlBody(frame);
    auto bytes = std::as_bytes(std::span(body));
    if (frame.header.flags == transport::kFrameAttach) {
      *epoch = frame.header.epoch;
      return DecodeAttach(bytes, attach) == wire::WireResult::kOk;
    }
    if (frame.header.flags != transport::kFramePing) return false;
    transport::FrameHeader header;
    header.flags = transport::kFramePong;
    stream.StartWrite(header, bytes, nullptr);
    auto event = stream.Wait(Clock::now() + kAttachPatience);
    if (event != MessageStream::Event::kWritten) return false;
  }
  return false;
}

void EndOfConnection(SessionTable& table, const std::shared_ptr<ServerSession>& session,
                     uint32_t lane, Outcome outcome, const transport::Closed& closed) {
  if (lane != 0 && (outcome == Outcome::kPeerClosed || outcome == Outcome::kStopped)) {
    return;  // the session's own logs carry its end
  }
  if (outcome != Outcome::kBroken) {
    table.End(session, closed);
  } else if (table.config()->resume_grace() == 0) {
    table.End(session, {static_cast<uint32_t>(transport::kLaunchFailed), "its connection broke"});
  } else {
    Log(LogLevel::kInfo, session->subject(), "its connection broke; waiting for it to come back");
  }
}

// The RPC of a stream: each has its lanes.
enum class Kind { kExecute, kTransfer };

void Handle(AcceptLoop& loop, transport::ServerStream& stream, Kind kind) {
  SessionTable& table = loop.table();
  Peer peer = loop.PeerOf(stream.context());
  if (peer.refused()) {
    Refuse(stream, peer, peer.refusal);
    return;
  }
  transport::Attach attach;
  uint32_t epoch = 0;
  if (!AwaitAttach(stream, &attach, &epoch)) {
    stream.End(true);
    return;
  }
  std::shared_ptr<ServerSession> session = table.Find(attach.session);
  bool fits = (attach.lane == 0) == (kind == Kind::kExecute);
  if (session == nullptr || !fits || !session->MayAttach(attach.lane, attach.token, peer)) {
    Refuse(stream, peer, "there is no such session, or not for this client");
    return;
  }
  transport::Closed closed;
  bool compression = table.config()->compression();
  auto ended = session->lane(attach.lane).Relay(stream, attach, epoch, compression, &closed);
  table.Detached();
  if (!ended) {
    Refuse(stream, peer, "a newer connection has taken its place");
    return;
  }
  Outcome outcome = *ended;
  if (outcome == Outcome::kViolation) {
    Log(LogLevel::kWarning, session->subject(), closed.sentence);
    stream.set_status({grpc::StatusCode::INVALID_ARGUMENT, closed.sentence});
  }
  // First the session: what its client held is free even if the connection ends slowly.
  EndOfConnection(table, session, attach.lane, outcome, closed);
  stream.End(outcome == Outcome::kBroken);
}

class RelayedCall final : public AcceptLoop::Waiting {
 public:
  RelayedCall(AcceptLoop& loop, Kind kind) : loop_(loop), kind_(kind) {}

  void Accept() {
    if (kind_ == Kind::kExecute) {
      loop_.service().RequestExecute(&stream_->context(), &stream_->stream(), &stream_->queue(),
                                     &loop_.queue(), this);
    } else {
      loop_.service().RequestTransfer(&stream_->context(), &stream_->stream(), &stream_->queue(),
                                      &loop_.queue(), this);
    }
  }

  void Happened(bool ok) override {
    if (!ok) return;
    if (!loop_.stopping()) (new RelayedCall(loop_, kind_))->Accept();
    std::shared_ptr<transport::ServerStream> stream = std::move(stream_);
    AcceptLoop& loop = loop_;
    bool spawned = loop.Spawn([&loop, stream, kind = kind_] { Handle(loop, *stream, kind); });
    if (!spawned) stream->End(true);
  }

 private:
  AcceptLoop& loop_;
  const Kind kind_;
  std::unique_ptr<transport::ServerStream> stream_ = std::make_unique<transport::ServerStream>();
};

}  // namespace

void AcceptExecute(AcceptLoop& loop) { (new RelayedCall(loop, Kind::kExecute))->Accept(); }
void AcceptTransfer(AcceptLoop& loop) { (new RelayedCall(loop, Kind::kTransfer))->Accept(); }

}  // namespace longwire::daemon
