// HandOver: another server gives a session to this one (docs/moving.md, decision 81). It says whose
// the session is, so only servers that the operator has named may (moves_from).
#include <algorithm>

#include "base/printable.h"
#include "link/certificates/address.h"
#include "link/transport/log.h"
#include "server/config/config.h"
#include "server/daemon/accept_loop.h"
#include "server/daemon/moving/arrival.h"
#include "server/daemon/moving/old_worker.h"
#include "server/daemon/moving/step_point.h"
#include "server/daemon/moving/step_stream.h"
#include "server/protocol/moving.h"
#include "wire/guards.h"

namespace longwire::daemon {
namespace {

using std::chrono::milliseconds;
using transport::HandOverAnswer;
using transport::HandOverEnd;
using transport::HandOverStep;
using transport::Log;
using transport::LogLevel;

constexpr milliseconds kFirstStep{5'000};
constexpr milliseconds kCallAnswer{15'000};
// For the next step: the old worker may need long for the work that is under way.
constexpr milliseconds kNextStep{120'000};

const char* const kBeyond = "what is sent is no step of a move; the servers are of other versions";
const char* const kOneBroke = "one of two connections between the servers broke";

// In a pool every session needs a place besides, for which its host has asked (Pool::TakePlace):
// who has that is of the pool.
bool IsOfPool(const config::Config& config) {
  return config.has_pool() && std::ranges::count(config.moves_from(), config::kMovesOfPool) != 0;
}

bool IsNamed(const config::Config& config, const std::string& name) {
  return wire::GuardIsOff("moves_from") || std::ranges::count(config.moves_from(), name) != 0;
}

// Why who calls may not hand sessions over; empty if it may. `name`: by which it is known.
std::string RefusalOfServer(AcceptLoop& loop, const grpc::ServerContext& context,
                            std::string* name) {
  const auto config = loop.table().config();
  const std::string chain = CertificatesOf(context);
  if (chain.empty()) {
    std::string problem;
    auto address = transport::ParseAddress(loop.PeerOf(context).address, &problem);
    *name = address ? address->host : "";
    if (!config->has_tls() &&
        (IsNamed(*config, *name) || IsNamed(*config, "any") || IsOfPool(*config))) {
      return {};
    }
  } else {
    std::string distrust = loop.Distrust(chain);
    if (!distrust.empty()) return distrust;
    transport::CertificatePointer own = transport::ParseCertificate(chain);
    if (own == nullptr) return "the server's certificate cannot be read";
    const transport::Certificate certificate = transport::Describe(own.get());
    *name = certificate.common_name;
    // A user's name may be a server's, too.
    if (!certificate.for_server) return "the certificate of '" + *name + "' is no server's";
    if (!name->empty() && (IsNamed(*config, *name) || IsOfPool(*config))) return {};
  }
  return "this server takes no sessions from '" + *name +
         "'; its administrator can add that name to moves_from";
}

class Conversation {
 public:
  Conversation(AcceptLoop& loop, StepStream& stream, std::string from, std::string name)
      : loop_(loop),
        table_(loop.table()),
        stream_(stream),
        from_(std::move(from)),
        name_(std::move(name)) {}

  void Run() {
    HandOverStep step;
    if (!Hear(&step, kFirstStep)) return;
    if (step.has_end()) return Ends(step);
    if (step.has_join()) return Joins(step.join().move());
    std::string sentence = kBeyond;
    if (!step.has_offer() || !Take(step.offer(), &sentence)) return Refuse(sentence);
    if (prepared_ && Hear(&step, patience_)) Ends(step);
  }

 private:
  bool Hear(HandOverStep* step, milliseconds patience) {
    return stream_.Receive(step, patience, &unheard_);
  }

  bool Answer(const HandOverAnswer& answer) { return stream_.Send(answer, kCallAnswer, &unheard_); }

  void Refuse(const std::string& sentence) {
    Log(LogLevel::kWarning, "a session of server '" + base::Printable(name_) + "' (" + from_ +
                                ") was refused: " + sentence);
    HandOverAnswer answer;
    answer.set_sentence(sentence);
    answer.set_again(again_);
    if (!Answer(answer)) return;
    // It hears this before its next step is lost.
    HandOverStep step;
    const auto deadline = Clock::now() + kFirstStep;
    while (Clock::now() < deadline && Hear(&step, kFirstStep)) {
    }
  }

  // Whose session it is, by what counts here.
  bool FindClient(const transport::HandOverOffer& offer, Peer* client, std::string* sentence) {
    const auto config = table_.config();
    if (config->has_tls() || !offer.certificates().empty()) {
      *client = loop_.HolderOf(offer.certificates());
    } else {
      client->identity = offer.identity();
      client->tenant = FindTenant(config, client->identity);
      client->refusal = "this server does not know the identity '" + client->identity +
                        "'; its administrator can list it at a tenant";
    }
    client->address = base::Printable(offer.address());
    *sentence = client->refusal;
    if (client->refused()) return false;
    const std::string& tenant = client->tenant->name();
    std::string problem;
    auto from = transport::ParseAddress(from_, &problem);
    const bool is_here = from && transport::IsLoopback(*from);
    if (client->identity != offer.identity() && !wire::GuardIsOff("moves_identity")) {
      *sentence = "the certificate is of '" + client->identity + "', and the session of '" +
                  base::Printable(offer.identity()) + "'";
    } else if (tenant != offer.tenant()) {
      *sentence = "'" + client->identity + "' belongs to the tenant '" + tenant +
                  "' here, and to '" + base::Printable(offer.tenant()) + "' there";
    } else if (client->tenant->monitor()) {
      *sentence = "the tenant '" + tenant + "' may read metrics and status only here";
    } else if (client->identity.starts_with(kUidPrefix)) {
      *sentence = "a program at the other server's local socket does not move";
    } else if (client->identity == kLoopbackIdentity && !is_here) {
      *sentence =
          "its program is known to its server as one of the same host (loopback), and would "
          "not be that here; use TLS";
    } else {
      return true;
    }
    return false;
  }

  bool Take(const transport::HandOverOffer& offer, std::string* sentence) {
    Peer client;
    *sentence = kBeyond;
    if (!IsMove(offer.move())) return false;
    if (offer.format() != moving::kVersion) {
      *sentence = "longwired here (" LONGWIRE_VERSION ") and there (" +
                  base::Printable(offer.client_version()) +
                  ") write sessions in other ways: have the same version at both";
      return false;
    }
    if (!FindClient(offer, &client, sentence)) return false;
    auto arrival = std::make_shared<SessionTable::Arrival>(table_, offer, client, name_);
    if (!arrival->Start(sentence)) return false;
    AtStep("there-started");
    HandOverAnswer answer;
    answer.set_done(true);
    answer.set_session(arrival->session());
    answer.set_device(arrival->device());
    answer.set_keeps_limits(true);
    answer.set_takes_ahead(true);
    answer.set_takes_joins(true);
    if (!Answer(answer) || !Fill(*arrival)) {
      again_ = arrival->again();
      *sentence = refusal_.empty() ? unheard_ : refusal_;
      return false;
    }
    if (!arrival->Prepare(arrival, sentence)) return false;
    AtStep("there-prepared");
    prepared_ = true;
    patience_ = arrival->patience();
    answer.set_patience_milliseconds(static_cast<uint64_t>(patience_.count()));
    prepared_ = Answer(answer);
    return true;
  }

  // All steps from the content to the last one. False with a refusal, or what was not heard.
  bool Fill(SessionTable::Arrival& arrival) {
    HandOverStep step;
    StepMessage content;
    bool has_rings = false, is_content = false;
    while (stream_.Receive(&step, &content, &is_content, kNextStep, &unheard_)) {
      if (is_content && !has_rings) {
        if (arrival.feed().Take(ContentFeed::Way::kFirst, content.parts)) continue;
        refusal_ = kOneBroke;
        if (arrival.feed().is_broken()) return false;
        if (arrival.IsRebuilt(&refusal_)) refusal_ = "its new worker takes no more";
        return false;
      }
      if (is_content) step.Clear();
      if (step.has_ahead() && !has_rings) {
        if (!Awaits(arrival.feed(), step.ahead().contents()) || !arrival.IsAhead(&refusal_)) {
          return false;
        }
        refusal_.clear();
        AtStep("there-ahead");
        HandOverAnswer answer;
        answer.set_done(true);
        if (!Answer(answer)) return false;
        continue;
      }
      if (step.has_rings() && !has_rings) {
        has_rings = true;
        if (!Awaits(arrival.feed(), step.rings().contents()) || !arrival.IsRebuilt(&refusal_) ||
            !arrival.TakeRings(step.rings(), &refusal_)) {
          return false;
        }
        AtStep("there-rebuilt");
        refusal_.clear();
      } else if (step.has_ring_bytes() && has_rings) {
        if (!arrival.TakeRingBytes(step.ring_bytes(), &refusal_)) return false;
        refusal_.clear();
      } else if (step.has_prepare() && has_rings) {
        return true;
      } else {
        refusal_ = kBeyond;
        return false;
      }
    }
    return false;
  }

  // Waits for what comes by another stream. True also where the new worker takes no more: it is
  // asked why.
  bool Awaits(ContentFeed& feed, uint64_t contents) {
    refusal_ = kOneBroke;
    return feed.Await(contents) || !feed.is_broken();
  }

  // By another stream: every second content of a session that arrives.
  void Joins(const std::string& move) {
    auto feed = IsMove(move) ? table_.FeedOf(move, name_) : nullptr;
    if (feed == nullptr || !feed->Widen()) {
      return Refuse("no session arrives by that move, or its content has begun to come");
    }
    HandOverAnswer answer;
    answer.set_done(true);
    bool goes_on = Answer(answer);
    while (goes_on && !feed->has_ended()) {
      HandOverStep step;
      StepMessage content;
      bool is_content = false;
      if (stream_.Receive(&step, &content, &is_content, kNextStep, &unheard_)) {
        goes_on = is_content && feed->Take(ContentFeed::Way::kSecond, content.parts);
      } else {
        goes_on = !stream_.is_broken();  // it may be long until the next one
      }
    }
    feed->Break();
  }

  // As long as the other server says what becomes of the move.
  void Ends(HandOverStep step) {
    do {
      using End = SessionTable::ArrivalEnd;
      const HandOverEnd& end = step.end();
      if (!step.has_end() || end.kind() == HandOverEnd::UNKNOWN || !IsMove(end.move())) {
        return Refuse(kBeyond);
      }
      const End what = end.kind() == HandOverEnd::BEGIN     ? End::kBegin
                       : end.kind() == HandOverEnd::DISCARD ? End::kDiscard
                                                            : End::kForget;
      uint64_t session = 0;
      std::string sentence;
      HandOverAnswer answer;
      answer.set_done(table_.EndArrival(end.move(), what, &session, &sentence));
      answer.set_session(session);
      if (!answer.done()) answer.set_sentence(sentence);
      if (what == End::kBegin) AtStep("there-begun");
      if (!Answer(answer) || what != End::kBegin) return;
    } while (Hear(&step, kCallAnswer));
  }

  AcceptLoop& loop_;
  SessionTable& table_;
  StepStream& stream_;
  const std::string from_, name_;
  std::string unheard_, refusal_;
  bool prepared_ = false;
  bool again_ = false;
  milliseconds patience_{0};
};

class HandOverCall final : public AcceptLoop::Waiting {
 public:
  explicit HandOverCall(AcceptLoop& loop) : loop_(loop) {}

  void Accept() {
    loop_.service().RequestHandOver(&stream_->context(), &stream_->stream(), &stream_->queue(),
                                    &loop_.queue(), this);
  }

  void Happened(bool ok) override {
    if (!ok) return;
    if (!loop_.stopping()) (new HandOverCall(loop_))->Accept();
    std::shared_ptr<transport::ServerStream> stream = std::move(stream_);
    const Peer peer = loop_.PeerOf(stream->context());
    auto shares = loop_.table().entrance().EnterStream("", peer.address, 0);
    if (!shares) {
      return Cut(*stream, {grpc::StatusCode::RESOURCE_EXHAUSTED, "too many calls at once"});
    }
    auto held = std::make_shared<admission::Entrance::StreamShares>(std::move(*shares));
    if (!loop_.Spawn([&loop = loop_, stream, held, peer] { Handle(loop, stream, peer); })) {
      Cut(*stream, {grpc::StatusCode::UNAVAILABLE, "the server shuts down"});
    }
  }

 private:
  static void Cut(transport::ServerStream& stream, grpc::Status status) {
    stream.set_status(std::move(status));
    stream.End(true);
  }

  static void Handle(AcceptLoop& loop, const std::shared_ptr<transport::ServerStream>& stream,
                     const Peer& peer) {
    std::string name;
    const std::string refusal = RefusalOfServer(loop, stream->context(), &name);
    if (!refusal.empty()) {
      Log(LogLevel::kWarning,
          "a session of the server at " + peer.address + " was refused: " + refusal);
      stream->set_status({grpc::StatusCode::PERMISSION_DENIED, refusal});
      stream->End(false);
      return;
    }
    OnConnection on_connection(loop, peer);
    StepStream steps(stream);
    Conversation(loop, steps, peer.address, name).Run();
    steps.End();
  }

  AcceptLoop& loop_;
  std::unique_ptr<transport::ServerStream> stream_ = std::make_unique<transport::ServerStream>();
};

}  // namespace

void AcceptHandOver(AcceptLoop& loop) { (new HandOverCall(loop))->Accept(); }

}  // namespace longwire::daemon
