// Hands a session over to another server (docs/moving.md, decision 81). Until it is noted that the
// session has gone every failure lets its old worker go on here. From then on this server runs it
// no more, and says to the other one that it begins; who has it is known to this server alone.
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <set>

#include "base/poll_set.h"
#include "base/printable.h"
#include "base/reason.h"
#include "link/certificates/address.h"
#include "link/transport/codes.h"
#include "link/transport/log.h"
#include "server/daemon/moving/far_server.h"
#include "server/daemon/moving/old_worker.h"
#include "server/daemon/moving/step_point.h"
#include "server/daemon/moving/suspended_head.h"
#include "server/daemon/sessions/session_table.h"
#include "server/protocol/moving.h"
#include "wire/rings/copy_ring.h"
#include "wire/switches.h"

namespace longwire::daemon {
namespace {

using std::chrono::milliseconds;
using transport::HandOverAnswer;
using transport::HandOverStep;
using transport::Log;
using transport::LogLevel;

// Until a worker waits there: as a link waits for one.
constexpr milliseconds kStartPatience{70'000};
constexpr milliseconds kEndAnswer{15'000};
// Without a byte from a worker that reads its device's memory.
constexpr milliseconds kContentStall{60'000};
constexpr milliseconds kContentLook{100};
// Of a time limit that goes along.
constexpr milliseconds kLeastLimit{3'000};
// Hosts of a pool that are asked for one move.
constexpr int kPlaces = 3;
const bool kWideMoves = !wire::IsSwitchedOff("wide-moves");

HandOverStep EndStep(const std::string& move, transport::HandOverEnd::Kind kind) {
  HandOverStep step;
  step.mutable_end()->set_move(move);
  step.mutable_end()->set_kind(kind);
  return step;
}

}  // namespace

class SessionTable::Giver {
 public:
  Giver(SessionTable& table, std::shared_ptr<ServerSession> old, const ServerPlace& to)
      : table_(table),
        old_(old),
        to_(to),
        counted_(table.move_figures_, MoveKind::kServer),
        worker_(std::in_place, old) {}
  ~Giver() {
    stream_ = {};
    worker_.reset();  // it goes on
    if (gone_) {
      table_.Unsettled();
      return;
    }
    old_->EndMove();
    table_.SendTerms(*table_.live_.Get());  // a client that came meanwhile got more time
    table_.Detached();
  }
  Giver(const Giver&) = delete;
  Giver& operator=(const Giver&) = delete;

  bool Run(std::string* sentence) {
    begun_ = Clock::now();
    counted_.Is(CountedMove::At::kSession);
    if (!Check(sentence)) return false;
    const ServerPlace to = to_;
    if (Attempt(true, sentence)) return true;
    const bool again = there_.again() || (far_ && far_->refusal().again());
    if (gone_ || !again) return false;
    Log(LogLevel::kWarning, old_->subject(), VoidText(*sentence));
    worker_.reset();  // it goes on
    worker_.emplace(old_);
    to_ = to;
    return Attempt(false, sentence);
  }
  // Whether the session is here no more, whatever Run said.
  bool gone() const { return gone_; }

 private:
  bool Attempt(bool ahead, std::string* sentence) {
    there_.Clear();
    lanes_.clear();  // the client may have come again since
    counted_.Is(CountedMove::At::kSession);
    old_->SetMoves("runs on while its move to another server is prepared");
    Pair stream;
    *sentence = "longwired has no sockets left: " + base::Reason(errno);
    if (!MakePair(SOCK_STREAM, &stream)) return false;
    stream_ = std::move(stream.ours);
    if (!worker_->Ask(std::move(stream.theirs), sentence)) return false;
    counted_.Is(CountedMove::At::kPlace);
    if (!Promise(sentence)) return false;
    const std::string where = "server " + base::Printable(to_.server);
    AtStep("offered");
    int rounds = 0;
    if (ahead && worker_->MayWriteAhead() && there_.takes_ahead() &&
        !RunRounds([this](std::string* why) { return RebuildAhead(why); }, &rounds, sentence)) {
      return false;
    }
    AtStep("ahead");
    counted_.Is(CountedMove::At::kHold);
    if (!worker_->Hold(sentence)) return false;
    const auto held = Clock::now();
    counted_.Is(CountedMove::At::kStandsStill);
    const uint64_t bytes = table_.LeasedBy(old_->id());
    old_->SetMoves("stands still while it moves to " + where);
    AtStep("held");
    if (!Carry(sentence) || !Commit(sentence) || !Begin(sentence)) return false;
    counted_.Done(begun_there_ - held, bytes, worker_->calls());
    *sentence = "session " + std::to_string(old_->id()) + " has moved to " + where + ", device " +
                std::to_string(there_.device()) + ", and is session " +
                std::to_string(there_.session()) + " there; it was prepared for " +
                MillisText(held - begun_) + " and stood still for " +
                MillisText(begun_there_ - held) + TextOf(worker_->calls());
    return true;
  }

  Round RebuildAhead(std::string* sentence) {
    *sentence = "it ended meanwhile";
    if (!worker_->WriteAhead() || !CopyContent(true, sentence)) return Round::kFailed;
    const Round round = worker_->HasWrittenAhead(sentence);
    if (round != Round::kDone) return round;
    HandOverStep step;
    step.mutable_ahead()->set_contents(far_->contents());
    return Ask(step, kCopyPatience, sentence) ? round : Round::kFailed;
  }

  bool Check(std::string* sentence) {
    const ClientDescription& client = old_->client();
    *sentence = BoundToItsPlace(client, *table_.live_.Get());
    if (!sentence->empty()) return false;
    const bool secure = table_.live_.Get()->has_tls();
    if (client.time_limit != 0 && LimitLeft() < kLeastLimit) {
      *sentence = "its time limit is just ending";
    } else if (old_->worker().keepers.size() != 1) {
      *sentence = "it has several devices";
    } else if (!client.program_id.empty()) {
      *sentence = "its program has sessions at several servers, which know where each other is";
    } else if (!old_->lane(0).link_follows()) {
      *sentence =
          "its link has no connection since longwired was started, or since the session came here: "
          "try again when it has; or it is older and does not go where a session goes: upgrade "
          "Longwire on its program's host";
    } else if (secure && old_->proof().certificates.empty()) {
      *sentence = "its client has shown no certificate since longwired was started";
    } else {
      return true;
    }
    return false;
  }

  // A worker that waits there. In a pool where the pool has promised a place; of hosts that refuse
  // all the same it is asked for others.
  bool Promise(std::string* sentence) {
    if (table_.pool_ == nullptr) return Offer(sentence);
    FarWish wish{to_.server, {}, TimeLeft(*old_)};
    for (int i = 0; i < kPlaces; ++i) {
      // Why it was refused before says more than that there is no other place.
      std::string no_place;
      if (!table_.pool_->PlaceElsewhere(*old_, worker_->request(), wish, &place_, &no_place)) {
        if (i == 0) *sentence = no_place;
        return false;
      }
      AtStep("placed");
      to_.server = place_.address;
      if (Offer(sentence)) return true;
      if (!wish.to.empty()) return false;
      wish.avoid.insert(place_.host);
    }
    return false;
  }

  milliseconds LimitLeft() const {
    return std::chrono::floor<milliseconds>(std::chrono::seconds(old_->client().time_limit) -
                                            (Clock::now() - old_->opened()));
  }

  bool Offer(std::string* sentence) {
    far_.emplace(to_.server);
    move_ = NewMove();
    *sentence = "the system has no random bytes";
    if (move_.empty()) return false;
    const GivenMove given(table_, move_);
    const transport::TlsMaterial tls =
        table_.material_ ? table_.material_() : transport::TlsMaterial();
    if (!far_->Connect(tls.certificate.empty() ? nullptr : &tls, sentence)) return false;
    const ClientDescription& client = old_->client();
    HandOverStep step;
    transport::HandOverOffer& offer = *step.mutable_offer();
    offer.set_client_version(LONGWIRE_VERSION);
    offer.set_format(moving::kVersion);
    offer.set_move(move_);
    offer.set_request(worker_->request());
    offer.set_identity(client.peer.identity);
    offer.set_tenant(client.peer.tenant->name());
    offer.set_certificates(old_->proof().certificates);
    offer.set_address(client.peer.address);
    offer.set_bytes(table_.LeasedBy(old_->id()));
    if (to_.device) offer.set_device(*to_.device);
    offer.set_session(old_->id());
    offer.set_time_left(TimeLeft(*old_));
    if (!place_.number.empty()) {
      transport::HandOverPlace& place = *offer.mutable_place();
      place.set_number(place_.number);
      place.set_ticket(place_.ticket);
      place.set_from_host(place_.from_host);
      place.set_from_number(place_.from_number);
    }
    if (!Ask(step, kStartPatience, sentence)) return false;
    if (kWideMoves && there_.takes_joins()) {
      std::string why;
      const bool wide = far_->Widen(tls.certificate.empty() ? nullptr : &tls, move_, &why);
      if (!wide) Log(LogLevel::kInfo, old_->subject(), "moves by one connection: " + why);
    }
    if (client.time_limit == 0) return true;
    *sentence = "longwired at " + to_.server +
                " is older than this one, and the session's time limit would begin anew there: "
                "upgrade it";
    left_ = LimitLeft();
    return there_.keeps_limits();
  }

  bool Ask(const HandOverStep& step, milliseconds patience, std::string* sentence) {
    if (!far_->Ask(step, patience, &there_, sentence)) return false;
    *sentence = to_.server + " refuses: " + base::Printable(there_.sentence());
    return there_.done();
  }

  // All that the session is. The other server has it when this has answered.
  bool Carry(std::string* sentence) {
    *sentence = "it ended meanwhile";
    if (!worker_->Write() || !CopyContent(false, sentence) || !worker_->HasWritten(sentence))
      return false;
    AtStep("written");
    HandOverStep prepare;
    prepare.mutable_prepare();
    if (!TellRings(sentence) || !Ask(prepare, kCopyPatience, sentence)) return false;
    AtStep("prepared");
    return true;
  }

  // What the worker writes: to its end, or in a round until it has said that it has written all.
  bool CopyContent(bool of_round, std::string* sentence) {
    ContentStep step;
    auto deadline = Clock::now() + kContentStall;
    while (true) {
      *sentence = "its worker does not write on";
      if (far_->HasSpoken()) {
        *sentence = "the connection between the servers broke";
        far_->HearRefusal(sentence);
        return false;
      }
      if (Clock::now() > deadline) return false;
      base::PollSet set;
      set.Add(stream_.get());
      const auto said = set.Add(of_round ? worker_->socket() : -1);
      if (set.Wait(kContentLook) <= 0) continue;
      const auto room = step.room();
      ssize_t got = recv(stream_.get(), room.data(), room.size(), MSG_DONTWAIT);
      if (got < 0 && errno == EINTR) continue;
      const bool none = got < 0 && errno == EAGAIN;
      if (none && !set.Ready(said)) continue;
      if (none) got = 0;  // it was written before it was said
      if (got < 0) return false;
      step.Filled(static_cast<size_t>(got));
      if (got != 0) deadline = Clock::now() + kContentStall;
      if (got != 0 && !step.room().empty()) continue;  // a socket holds less than a step
      if (!step.empty() && !far_->Queue(std::move(step), sentence)) return false;
      if (got == 0) return true;
      step = {};
    }
  }

  bool TellRings(std::string* sentence) {
    HandOverStep step;
    transport::HandOverRings& rings = *step.mutable_rings();
    rings.set_contents(far_->contents());
    rings.set_time_left_milliseconds(static_cast<uint64_t>(std::max<int64_t>(left_.count(), 0)));
    std::vector<std::span<const std::byte>> contents;
    *sentence = "its logs cannot be read";
    for (uint32_t i = 0; i < old_->lanes(); ++i) {
      for (wire::RingMemory* ring : {&old_->lane(i).up_ring(), &old_->lane(i).down_ring()}) {
        wire::HeldBytes held;
        if (!wire::ReadRing(*ring, &held, &contents.emplace_back())) return false;
        transport::HandOverRing& told = *rings.add_rings();
        told.set_bytes(held.bytes);
        told.set_written(held.written);
        told.set_released(held.released);
      }
      AddLane(LaneOf(old_->notes()->Read(i)), rings.add_lanes());
    }
    if (!far_->Tell(step, sentence)) return false;
    for (std::span<const std::byte> content : contents) {
      for (; !content.empty(); content = content.subspan(std::min(kStepBytes, content.size()))) {
        HandOverStep piece;
        piece.set_ring_bytes(content.data(), std::min(kStepBytes, content.size()));
        if (!far_->Queue(piece, sentence)) return false;
      }
    }
    return true;
  }

  void AddLane(const TicketLane& lane, transport::HandOverLane* told) {
    lanes_.push_back(lane);
    told->set_token(lane.token);
    told->set_previous_token(lane.previous_token);
    told->set_received(lane.received);
    told->set_epoch(lane.epoch);
    told->set_previous_good(lane.previous_good);
    told->set_first_attach(lane.first_attach);
  }

  GoneSession NoteOf() {
    GoneSession gone;
    gone.move = move_;
    gone.numbers = old_->formerly;
    gone.numbers.push_back(old_->id());
    gone.identity = old_->client().peer.identity;
    gone.tenant = old_->client().peer.tenant->name();
    gone.server = to_.server;
    gone.session = there_.session();
    gone.since = static_cast<uint64_t>(time(nullptr));
    gone.patience = there_.patience_milliseconds() / 1000 + 1;
    gone.lanes = lanes_;
    return gone;
  }

  // The session is here no more, and nowhere yet.
  bool Commit(std::string* sentence) {
    *sentence = "it ended meanwhile";
    bool is_here = false;
    {
      base::MutexLock lock(table_.mutex_);
      is_here = !table_.ending_ && table_.sessions_.contains(old_->id()) && old_->Retire();
    }
    if (!is_here) return TakeBack();
    if (!table_.move_notes_.Add(NoteOf(), sentence)) {
      old_->Return();
      if (old_->WorkerIsDead()) {
        table_.End(old_, {static_cast<uint32_t>(transport::kLaunchFailed), "its worker ended"});
      }
      return TakeBack();
    }
    gone_ = true;
    counted_.Is(CountedMove::At::kNothing);  // LoseGone and Settle count it if Begin does not
    AtStep("noted");
    {
      base::MutexLock lock(table_.mutex_);
      table_.sessions_.erase(old_->id());
      for (uint64_t number : old_->formerly) table_.moved_.erase(number);
    }
    const bool ended = worker_->End([this] { table_.warden_->Kill(old_->id()); });
    table_.PutAway(*old_, "moved to server " + to_.server);
    AtStep("ended");
    if (ended) return true;
    *sentence = "its old worker does not end, so it may not begin there";
    TakeBack();
    table_.LoseGone(NoteOf(), *sentence);
    return false;
  }

  // The other server throws away what it has: at once, or when its patience is over. False.
  bool TakeBack() {
    std::string unheard;
    (void)far_->Ask(EndStep(move_, transport::HandOverEnd::DISCARD), kEndAnswer, &there_, &unheard);
    return false;
  }

  bool Begin(std::string* sentence) {
    HandOverAnswer answer;
    const bool heard =
        far_->Ask(EndStep(move_, transport::HandOverEnd::BEGIN), kEndAnswer, &answer, sentence);
    if (!heard) {
      table_.move_notes_.GiveBack(old_->id());
      *sentence = "session " + std::to_string(old_->id()) + " was handed over to " + to_.server +
                  ", which has not said that it has begun there (" + *sentence +
                  "). It is asked again; if it does not answer, the session ends with an error";
      return false;
    }
    if (!answer.done()) {
      *sentence = to_.server + " has lost it: " + base::Printable(answer.sentence());
      table_.LoseGone(NoteOf(), *sentence);
      return false;
    }
    begun_there_ = Clock::now();
    table_.move_notes_.SetBegun(old_->id());
    table_.move_notes_.GiveBack(old_->id());
    AtStep("begun");
    std::string unheard;
    (void)far_->Ask(EndStep(move_, transport::HandOverEnd::FORGET), kEndAnswer, &answer, &unheard);
    far_->End();
    return true;
  }

  SessionTable& table_;
  const std::shared_ptr<ServerSession> old_;
  ServerPlace to_;  // in a pool its server is known once there is a place
  CountedMove counted_;
  FarPlace place_;
  std::optional<FarServer> far_;
  milliseconds left_{0};  // of its time limit, when the other server had answered
  std::string move_;
  HandOverAnswer there_;  // the last one
  std::vector<TicketLane> lanes_;
  std::optional<OldWorker> worker_;
  wire::Descriptor stream_;
  Clock::time_point begun_, begun_there_;
  bool gone_ = false;
};

bool SessionTable::HandOver(uint64_t id, const ServerPlace& to, std::string* sentence) {
  ServerPlace place = to;
  if (pool_ == nullptr) {
    auto address = transport::ParseAddress(to.server, sentence);
    if (!address) return false;
    place.server = address->Text();
  }
  auto session = FindToMove(id, sentence);
  if (session == nullptr) return false;
  Giver giver(*this, session, place);
  const bool moved = giver.Run(sentence);
  if (!moved && !giver.gone()) {
    *sentence = "session " + std::to_string(id) + " does not move: " + *sentence;
  }
  Log(moved ? LogLevel::kInfo : LogLevel::kWarning, session->subject(), *sentence);
  return moved;
}

bool SessionTable::HandOverAll(const std::string& server, std::vector<std::string>* sentences) {
  constexpr int kLooks = 3;  // some may have been opened just before
  bool all = true;
  std::set<uint64_t> tried;
  for (int look = 0; look < kLooks; ++look) {
    for (const auto& session : List()) {
      if (Find(session->id()) == nullptr || !tried.insert(session->id()).second) continue;
      all &= HandOver(session->id(), {server, std::nullopt}, &sentences->emplace_back());
    }
  }
  return all;
}

}  // namespace longwire::daemon
