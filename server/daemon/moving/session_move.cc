// Moves a session to a new worker on another device of this server (docs/moving.md). The new worker
// is a session of its own number, which takes the old one's place; the client resumes by the number
// that it knows. Until the places are swapped every failure lets the old worker go on.
#include <sys/socket.h>

#include <cerrno>

#include "base/reason.h"
#include "link/transport/codes.h"
#include "link/transport/log.h"
#include "server/daemon/sessions/recording.h"
#include "server/daemon/sessions/session_table.h"
#include "server/daemon/sessions/terms.h"
#include "server/protocol/moving.h"
#include "server/rules/rules_of.h"

namespace longwire::daemon {
namespace {

using std::chrono::milliseconds;
using transport::Log;
using transport::LogLevel;

// How long a program's work may take to end, all attempts together. A session that waits for its
// program's next call (a host function, an event) is let go between them.
constexpr milliseconds kQuietPatience{10'000};
constexpr milliseconds kOneHold{400};
constexpr milliseconds kBetweenHolds{30};
constexpr milliseconds kStillQuiet{100};
constexpr milliseconds kAnswerPatience{20'000};
constexpr milliseconds kCopyPatience{600'000};
constexpr milliseconds kEndPatience{5'000};

struct Pair {
  wire::Descriptor ours, theirs;
};

bool MakePair(int type, Pair* pair) {
  int both[2] = {-1, -1};
  if (socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, both) != 0) return false;
  pair->ours = wire::Descriptor(both[0]);
  pair->theirs = wire::Descriptor(both[1]);
  return true;
}

// The answer's code; -1 if none came.
int32_t Hear(int socket, milliseconds patience, std::string* sentence) {
  bool closed = false;
  auto said = wire::ReceiveMessage(socket, patience, &closed);
  moving::MoveAnswer answer;
  if (!said || message::Unpack(said->bytes, &answer) != wire::WireResult::kOk) {
    *sentence = closed ? "a worker ended meanwhile" : "a worker did not answer in time";
    return -1;
  }
  *sentence = answer.sentence;
  return answer.code;
}

}  // namespace

class SessionTable::Mover {
 public:
  Mover(SessionTable& table, std::shared_ptr<ServerSession> old) : table_(table), old_(old) {}
  ~Mover() {
    packets_ = {};  // the old worker goes on
    if (moved_) return;
    old_->Resume();
    if (new_ != nullptr) table_.Abandon(new_->id());
    old_->EndMove();
    table_.Detached();
  }
  Mover(const Mover&) = delete;
  Mover& operator=(const Mover&) = delete;

  bool Run(int32_t device, std::string* sentence) {
    const auto begun = Clock::now();
    if (!Check(device, sentence) || !AskOld(sentence) || !StartNew(device, sentence)) return false;
    if (!Hold(sentence)) return false;
    const auto held = Clock::now();
    if (!Carry(sentence) || !Switch(sentence)) return false;
    const auto end = Clock::now();
    *sentence = "session " + std::to_string(old_->id()) + " has moved to device " +
                std::to_string(device) + " and is session " + std::to_string(new_->id()) +
                " there; it was prepared for " + Millis(held - begun) + " and stood still for " +
                Millis(end - held);
    return true;
  }

 private:
  static std::string Millis(Clock::duration time) {
    return std::to_string(std::chrono::duration_cast<milliseconds>(time).count()) + " ms";
  }

  bool Check(int32_t device, std::string* sentence) {
    const ClientDescription& client = old_->client();
    const auto& keepers = old_->worker().keepers;
    const auto config = table_.live_.Get();
    if (client.local()) {
      *sentence = "its program is on this host and uses the worker's rings itself (unix:)";
    } else if (table_.gone_) {
      *sentence = "this server is in a pool, whose sessions have their places from the pool";
    } else if (config->resume_grace() == 0) {
      *sentence = "resume_grace is 0: no client comes back after a pause";
    } else if (client.time_limit != 0) {
      *sentence = "it has a time limit, which would begin anew";
    } else if (!rules::RulesOf(*config, client.peer.tenant->name(), client.program).rules.empty()) {
      *sentence = "rules of the configuration are about it, which its new worker would not have";
    } else if (keepers.size() != 1) {
      *sentence = "it has several devices";
    } else if (keepers.front().device == device) {
      *sentence = "it is on device " + std::to_string(device) + " already";
    } else {
      return true;
    }
    return false;
  }

  bool AskOld(std::string* sentence) {
    Pair packets;
    if (!MakePair(SOCK_SEQPACKET, &packets) || !MakePair(SOCK_STREAM, &stream_)) {
      *sentence = "longwired has no sockets left: " + base::Reason(errno);
      return false;
    }
    packets_ = std::move(packets.ours);
    const int given[] = {packets.theirs.get(), stream_.ours.get()};
    wire::Descriptor control = old_->ControlSocket();
    bool told = wire::SendMessage(control.get(), message::Pack(moving::MoveOut{}), given);
    packets.theirs = {};
    stream_.ours = {};
    auto said = wire::ReceiveMessage(packets_.get(), kAnswerPatience);
    if (!told || !said || message::Unpack(said->bytes, &offer_) != wire::WireResult::kOk) {
      *sentence = "its worker does not answer; it may be of an older version";
      return false;
    }
    *sentence = offer_.sentence;
    return offer_.code == 0;
  }

  bool StartNew(int32_t device, std::string* sentence) {
    auto bytes = std::as_bytes(std::span(offer_.request));
    wire::OpenRequest request;
    wire::Reader reader(bytes);
    *sentence = "its worker's answer cannot be read";
    if (request.Decode(reader) != wire::WireResult::kOk) return false;
    PlacedSession placed;
    placed.devices = {device};
    OpeningRefusal refusal;
    new_ = table_.StartSession(request, old_->client().peer, true, &placed, &refusal);
    *sentence = refusal.sentence;
    if (new_ == nullptr) return false;
    Pair packets;
    if (!MakePair(SOCK_SEQPACKET, &packets)) return false;
    new_packets_ = std::move(packets.ours);
    const int given[] = {packets.theirs.get(), stream_.theirs.get()};
    wire::Descriptor control = new_->ControlSocket();
    *sentence = "its new worker takes no messages";
    bool told = wire::SendMessage(control.get(), message::Pack(moving::MoveIn{}), given);
    stream_.theirs = {};
    if (!told) return false;
    std::atomic<bool> cancelled{false};
    wire::OpenReply reply;
    if (!new_->Introduce(bytes, cancelled, &reply, sentence)) return false;
    *sentence = reply.sentence;
    return reply.code == 0;
  }

  // One attempt after the other, with the program at work between them.
  bool Hold(std::string* sentence) {
    const auto deadline = Clock::now() + kQuietPatience;
    for (uint32_t patience = kOneHold.count(); Clock::now() < deadline;) {
      int32_t code = HoldFor(patience, sentence);
      if (code == 0) {
        bool alone = old_->Pause();
        // Bytes may have come before the connections were broken.
        code = alone ? HoldFor(static_cast<uint32_t>(kStillQuiet.count()), sentence) : 1;
        if (code == 0) return true;
        old_->Resume();
      }
      if (code != static_cast<int32_t>(transport::kNotReady) && code != 1) return false;
      if (!LetGo(sentence)) return false;
      std::this_thread::sleep_for(kBetweenHolds);
    }
    *sentence = "busy: it was never without work between two calls for " +
                std::to_string(kQuietPatience.count() / 1000) + " s; try again later";
    return false;
  }

  int32_t HoldFor(uint32_t patience, std::string* sentence) {
    if (!wire::SendMessage(packets_.get(), message::Pack(moving::MoveHold{patience}))) return -1;
    return Hear(packets_.get(), milliseconds(patience) + kAnswerPatience, sentence);
  }

  bool LetGo(std::string* sentence) {
    if (!wire::SendMessage(packets_.get(), message::Pack(moving::MoveHold{0, true}))) return false;
    return Hear(packets_.get(), kAnswerPatience, sentence) == 0;
  }

  bool Carry(std::string* sentence) {
    *sentence = "its worker ended";
    if (!wire::SendMessage(packets_.get(), message::Pack(moving::MoveWrite{}))) return false;
    std::string there;
    // The new one first: if it refuses, the old one cannot write on.
    int32_t rebuilt = Hear(new_packets_.get(), kCopyPatience, &there);
    if (rebuilt != 0) {
      *sentence = "it cannot be rebuilt on that device: " + there;
      return false;
    }
    return Hear(packets_.get(), kAnswerPatience, sentence) == 0;
  }

  bool Switch(std::string* sentence) {
    *sentence = "its logs cannot be handed over";
    if (!new_->GoOnFrom(*old_)) return false;
    *sentence = table_.ServeWorker(*new_, *new_->client().peer.tenant);
    if (!sentence->empty()) return false;
    *sentence = "it ended meanwhile";
    {
      base::MutexLock lock(table_.mutex_);
      if (table_.ending_ || !table_.sessions_.contains(old_->id()) || !old_->Retire()) return false;
      table_.sessions_.erase(old_->id());
      table_.sessions_[new_->id()] = new_;
      for (uint64_t number : new_->formerly) table_.moved_[number] = new_->id();
    }
    // From here on there is no way back: the old worker must be gone before the new one runs.
    moved_ = true;
    (void)wire::SendMessage(packets_.get(), message::Pack(moving::MoveEnd{}));
    if (!old_->WorkerEnds(kEndPatience)) table_.warden_->Kill(old_->id());
    bool gone = old_->WorkerEnds(kEndPatience);
    table_.usage_->Ended(table_.RecordOf(*old_, {0, "moved to session " + NewNumber()}));
    table_.Abandon(old_->id());
    if (!gone || !wire::SendMessage(new_packets_.get(), message::Pack(moving::MoveGo{}))) {
      *sentence = gone ? "its new worker ended at the switch"
                       : "its old worker does not end, so its new one may not begin";
      table_.End(new_, {static_cast<uint32_t>(transport::kLaunchFailed), *sentence});
      return false;
    }
    if (new_->WorkerIsDead()) {
      table_.End(new_, {static_cast<uint32_t>(transport::kLaunchFailed), "its worker ended"});
    }
    table_.SendTerms(*table_.live_.Get());
    table_.Detached();
    return true;
  }

  std::string NewNumber() const { return std::to_string(new_->id()); }

  SessionTable& table_;
  const std::shared_ptr<ServerSession> old_;
  std::shared_ptr<ServerSession> new_;
  wire::Descriptor packets_, new_packets_;
  Pair stream_;
  moving::MoveOffer offer_;
  bool moved_ = false;
};

std::shared_ptr<ServerSession> SessionTable::FindAlsoMoved(uint64_t id) {
  {
    base::MutexLock lock(mutex_);
    auto moved = moved_.find(id);
    // Both are there where a daemon was killed before the old worker had ended: that one goes on.
    if (moved != moved_.end() && !sessions_.contains(id)) id = moved->second;
  }
  return Find(id);
}

bool SessionTable::Move(uint64_t id, int32_t device, std::string* sentence) {
  auto session = FindAlsoMoved(id);
  if (session == nullptr) {
    *sentence =
        "there is no session " + std::to_string(id) + "; longwire admin sessions lists them";
    return false;
  }
  if (!session->BeginMove()) {
    *sentence = "session " + std::to_string(id) + " is moving already; wait until that has ended";
    return false;
  }
  bool moved = Mover(*this, session).Run(device, sentence);
  if (!moved) *sentence = "session " + std::to_string(id) + " does not move: " + *sentence;
  Log(moved ? LogLevel::kInfo : LogLevel::kWarning, session->subject(), *sentence);
  return moved;
}

}  // namespace longwire::daemon
