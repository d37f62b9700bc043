// Execute and Transfer: who attaches to which lane of which session, and what happens when the
// connection ends.
#include <algorithm>
#include <optional>
#include <thread>

#include "link/transport/codes.h"
#include "link/transport/log.h"
#include "server/config/config.h"
#include "server/daemon/accept_loop.h"

namespace longwire::daemon {
namespace {

using transport::Log;
using transport::LogLevel;
using transport::MessageStream;
using Outcome = transport::StreamPump::Outcome;

// How long a refused client may take to read the reason.
constexpr std::chrono::seconds kRefusalPatience{5};
constexpr std::chrono::seconds kTermsPatience{3};
// A client that came when its time was over hears so when it comes again.
constexpr std::chrono::milliseconds kLeastWait{2000};
// A session that is held for a move or for its suspension is likely to be there again within this
// time; the answer to an attach may take 3 s.
constexpr std::chrono::milliseconds kHeldLook{2000};
constexpr std::chrono::milliseconds kBetweenLooks{5};
// Else its client gets this much longer, each time that it comes.
constexpr std::chrono::seconds kHeldWait{120};
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
  const auto deadline = Clock::now() + kRefusalPatience;
  while (true) {
    auto event = stream.Wait(deadline);
    if (event != MessageStream::Event::kRead) break;
  }
  stream.set_status({grpc::StatusCode::UNAUTHENTICATED, sentence});
  stream.End(false);
}

// Waits for the attach, answering pings, which give no more time. False when it does not come.
bool AwaitAttach(transport::ServerStream& stream, Clock::time_point deadline,
                 transport::Attach* attach, uint32_t* epoch) {
  for (int pings = 0; pings < kMaxPings; ++pings) {
    stream.StartRead();
    if (stream.Wait(deadline) != MessageStream::Event::kRead) return false;
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
    if (stream.Wait(deadline) != MessageStream::Event::kWritten) return false;
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

// A stream without a session, as it arrives.
struct Arrival {
  Peer peer;
  admission::Entrance::StreamShares shares;
  Clock::time_point deadline;  // for its attach
};

// The session's client waits that much longer. An older link does not know that it may, and comes
// back for its usual time.
void LetWait(transport::ServerStream& stream, const transport::Attach& attach, uint32_t epoch,
             std::chrono::milliseconds rest) {
  if (attach.understands_terms != 0) {
    transport::Terms terms;
    terms.resume_grace_milliseconds =
        static_cast<uint32_t>(std::min<int64_t>(std::max(rest, kLeastWait).count(), UINT32_MAX));
    std::string body = transport::EncodeTerms(terms);
    stream.StartWrite({0, 0, epoch, transport::kFrameTerms}, std::as_bytes(std::span(body)),
                      nullptr);
    stream.Wait(Clock::now() + kTermsPatience);
  }
  stream.End(false);
}

// The session that the attach is for; nullptr if there is none. One that moves, or is restored, is
// awaited for a moment by who has a right to it; held: still.
std::shared_ptr<ServerSession> FindToAttach(SessionTable& table, const transport::Attach& attach,
                                            const Peer& peer, bool* held) {
  const auto deadline = Clock::now() + kHeldLook;
  for (int looks = 0;; ++looks) {
    std::shared_ptr<ServerSession> session = table.FindAlsoMoved(attach.session);
    *held = session != nullptr && session->held();
    const bool ends = attach.resume_position == transport::kAbandoned;
    if (*held && !session->MayAttach(attach.lane, attach.token, peer)) return session;
    const auto gone = session == nullptr ? table.GoneTo(attach, peer) : std::nullopt;
    const bool in_doubt = gone && DoubtOf(*gone);
    // Between the end of its ticket and its place in the table it is nowhere.
    const bool nowhere = session == nullptr && !gone && looks < 2 && !table.WaitFor(attach, peer);
    if (ends || (!*held && !in_doubt && !nowhere) || Clock::now() > deadline) return session;
    std::this_thread::sleep_for(kBetweenLooks);
  }
}

// The session has gone to another server. While it is not known to have begun there its client
// waits here.
void HandleGone(transport::ServerStream& stream, const transport::Attach& attach, uint32_t epoch,
                const Peer& peer, const GoneSession& gone) {
  const auto doubt = DoubtOf(gone);
  if (doubt) return LetWait(stream, attach, epoch, *doubt);
  if (attach.understands_terms < transport::kUnderstandsMoves) {
    return Refuse(stream, peer,
                  "the session has moved to server " + gone.server +
                      ", and the link on its program's host is too old to go there: upgrade "
                      "Longwire there");
  }
  const std::string body = transport::EncodeMoved({gone.session, gone.server});
  stream.StartWrite({0, 0, epoch, transport::kFrameMoved}, std::as_bytes(std::span(body)), nullptr);
  stream.Wait(Clock::now() + kTermsPatience);
  stream.End(false);
}

// An attach without a session for it; with `waits` it is a suspended one's.
void HandleAbsent(transport::ServerStream& stream, SessionTable& table, const Peer& peer,
                  const transport::Attach& attach, uint32_t epoch,
                  std::optional<std::chrono::milliseconds> waits) {
  const bool abandoned = attach.resume_position == transport::kAbandoned;
  if (waits && !abandoned) return LetWait(stream, attach, epoch, *waits);
  if (waits) {
    table.EndSuspended(attach.session, "its program and its link have ended");
    stream.End(false);
    return;
  }
  std::string sentence = table.FarewellTo(peer, attach.session);
  if (sentence.empty()) sentence = "there is no such session, or not for this client";
  Refuse(stream, peer, sentence);
}

// A server that builds a bridge belongs to no tenant; who it acts for is said by its ticket.
bool MayBeServer(AcceptLoop& loop, const grpc::ServerContext& context) {
  return loop.Distrust(CertificatesOf(context)).empty();
}

void HandleBridge(AcceptLoop& loop, transport::ServerStream& stream, Arrival arrival,
                  const transport::Attach& attach, uint32_t epoch) {
  SessionTable& table = loop.table();
  const Peer& peer = arrival.peer;
  std::shared_ptr<ServerSession> session = table.FindAlsoMoved(attach.session);
  const bool is_lane = session != nullptr && attach.lane != 0 && attach.lane < session->lanes();
  if (!is_lane ||
      !session->bridge_rights().Take(attach.lane, attach.token, *attach.offer, Clock::now())) {
    Refuse(stream, peer, "the ticket for a bridge between two servers is not good (any more)");
    return;
  }
  OnConnection on_connection(loop, peer);
  arrival.shares = {};
  transport::Closed closed;
  auto ended = session->lane(attach.lane).Relay(stream, attach, epoch, false, &closed);
  if (ended == Outcome::kViolation) Log(LogLevel::kWarning, session->subject(), closed.sentence);
  // The bridge alone ends: its sessions' client learns it from the server that connected.
  stream.End(true);
}

void Handle(AcceptLoop& loop, transport::ServerStream& stream, Kind kind, Arrival arrival) {
  SessionTable& table = loop.table();
  const Peer& peer = arrival.peer;
  transport::Attach attach;
  uint32_t epoch = 0;
  if (peer.refused() && !MayBeServer(loop, stream.context())) {
    Refuse(stream, peer, peer.refusal);
    return;
  }
  if (!AwaitAttach(stream, arrival.deadline, &attach, &epoch)) {
    stream.End(true);
    return;
  }
  if (attach.offer) {
    HandleBridge(loop, stream, std::move(arrival), attach, epoch);
    return;
  }
  if (peer.refused()) {
    Refuse(stream, peer, peer.refusal);
    return;
  }
  bool held = false;
  std::shared_ptr<ServerSession> session = FindToAttach(table, attach, peer, &held);
  bool fits = (attach.lane == 0) == (kind == Kind::kExecute);
  if (session == nullptr || !fits || !session->MayAttach(attach.lane, attach.token, peer)) {
    if (auto gone = fits ? table.GoneTo(attach, peer) : std::nullopt) {
      return HandleGone(stream, attach, epoch, peer, *gone);
    }
    auto waits = fits && session == nullptr ? table.WaitFor(attach, peer) : std::nullopt;
    return HandleAbsent(stream, table, peer, attach, epoch, waits);
  }
  if (attach.resume_position == transport::kAbandoned) {
    table.End(session, {0, "its program and its link have ended"});
    Refuse(stream, peer, "its program and its link have ended");
    return;
  }
  if (held) {
    return LetWait(
        stream, attach, epoch,
        std::max<std::chrono::milliseconds>(kHeldWait, config::ResumeGrace(*table.config())));
  }
  OnConnection on_connection(loop, peer);
  arrival.shares = {};
  if (attach.lane == 0) session->SetProof(peer.proof);
  transport::Closed closed;
  bool compression = table.config()->compression();
  auto ended = session->lane(attach.lane).Relay(stream, attach, epoch, compression, &closed);
  table.Detached();
  if (!ended) {
    Refuse(stream, peer, "a newer connection has taken its place");
    return;
  }
  Outcome outcome = *ended;
  if (table.left()) {  // the next daemon goes on with it
    stream.End(true);
    return;
  }
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
    auto arrival = std::make_shared<Arrival>();
    bool spawned =
        Enter(*stream, *arrival) && loop_.Spawn([&loop = loop_, stream, arrival, kind = kind_] {
          Handle(loop, *stream, kind, std::move(*arrival));
        });
    if (!spawned) stream->End(true);
  }

 private:
  // False when too many wait already.
  bool Enter(transport::ServerStream& stream, Arrival& arrival) {
    SessionTable& table = loop_.table();
    admission::Entrance& entrance = table.entrance();
    arrival.peer = loop_.PeerOf(stream.context());
    arrival.deadline = Clock::now() + entrance.opening_time();
    const Peer& peer = arrival.peer;
    const std::string identity = peer.refused() ? "" : peer.identity;
    if (!peer.refused()) entrance.connections().Used(peer.address);
    size_t own = peer.refused() ? 0 : table.StreamsOf(identity);
    auto shares = entrance.EnterStream(identity, peer.address, own);
    if (shares) {
      arrival.shares = std::move(*shares);
      return true;
    }
    Log(LogLevel::kWarning, peer.subject(),
        "a stream from " + peer.address +
            " was refused: too many wait for a session (admission.waiting_of_identity, "
            "waiting_of_address, waiting)");
    return false;
  }

  AcceptLoop& loop_;
  const Kind kind_;
  std::unique_ptr<transport::ServerStream> stream_ = std::make_unique<transport::ServerStream>();
};

}  // namespace

void AcceptExecute(AcceptLoop& loop) { (new RelayedCall(loop, Kind::kExecute))->Accept(); }
void AcceptTransfer(AcceptLoop& loop) { (new RelayedCall(loop, Kind::kTransfer))->Accept(); }

}  // namespace longwire::daemon
