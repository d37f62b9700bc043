// Moves a session to a new worker on another device of this server (docs/moving.md). The new worker
// is a session of its own number, which takes the old one's place; the client resumes by the number
// that it knows. Until the places are swapped every failure lets the old worker go on.
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <set>
#include <thread>

#include "base/reason.h"
#include "link/transport/codes.h"
#include "link/transport/log.h"
#include "server/daemon/moving/old_worker.h"
#include "server/daemon/moving/step_point.h"
#include "server/daemon/moving/successor.h"
#include "server/daemon/sessions/recording.h"
#include "server/daemon/sessions/session_table.h"

namespace longwire::daemon {
namespace {

using transport::Log;
using transport::LogLevel;

}  // namespace

class SessionTable::Mover {
 public:
  // `why`: for the log, with what became of it; empty: an administrator wants it.
  Mover(SessionTable& table, std::shared_ptr<ServerSession> old, std::string why = "")
      : table_(table),
        old_(old),
        counted_(table.move_figures_, why.empty() ? MoveKind::kDevice : MoveKind::kRebalance),
        why_(why.empty() ? "" : ", " + why),
        worker_(std::in_place, old),
        new_(std::in_place, table) {}
  ~Mover() {
    const uint64_t next = new_->session() == nullptr ? 0 : new_->session()->id();
    worker_.reset();  // it goes on
    new_.reset();
    if (has_both_) table_.pool_->Moved(*old_, moved_ ? old_->id() : next);
    if (moved_) return;
    old_->EndMove();
    table_.SendTerms(*table_.live_.Get());  // a client that came meanwhile got more time
    table_.Detached();
  }
  Mover(const Mover&) = delete;
  Mover& operator=(const Mover&) = delete;

  // Whether it can move. Nothing has stopped.
  bool Ask(std::optional<int32_t> device, std::string* sentence) {
    counted_.Is(CountedMove::At::kSession);
    if (!Check(device, sentence)) return false;
    device_ = device;
    where_ = device ? "device " + std::to_string(*device) : "another device";
    if (!AskWorker(sentence)) return false;
    counted_.Is(CountedMove::At::kNothing);  // it can; it may be that nobody wants it to
    return true;
  }

  // After Ask.
  bool Go(std::string* sentence) {
    begun_ = Clock::now();
    PlacedSession placed;
    counted_.Is(CountedMove::At::kPlace);
    if (!ChoosePlace(&placed, sentence)) return false;
    if (Attempt(placed, true, sentence)) return true;
    if (!new_->again()) return false;
    Log(LogLevel::kWarning, old_->subject(), VoidText(*sentence));
    worker_.reset();  // it goes on
    worker_.emplace(old_);
    new_.emplace(table_);
    counted_.Is(CountedMove::At::kSession);
    return AskWorker(sentence) && Attempt(placed, false, sentence);
  }

 private:
  bool AskWorker(std::string* sentence) {
    old_->SetMoves("runs on while its move to " + where_ + " is prepared");
    Pair stream;
    *sentence = "longwired has no sockets left: " + base::Reason(errno);
    if (!MakePair(SOCK_STREAM, &stream)) return false;
    stream_ = std::move(stream.theirs);
    return worker_->Ask(std::move(stream.ours), sentence);
  }

  bool Attempt(PlacedSession placed, bool ahead, std::string* sentence) {
    counted_.Is(CountedMove::At::kPlace);
    if (!new_->Start(worker_->request(), old_->client().peer, &placed, std::move(stream_),
                     sentence)) {
      return false;
    }
    int rounds = 0;
    if (ahead && worker_->MayWriteAhead() &&
        !RunRounds([this](std::string* why) { return RebuildAhead(why); }, &rounds, sentence)) {
      return false;
    }
    AtStep("ahead");
    if (!IsWelcome(sentence)) return false;
    counted_.Is(CountedMove::At::kHold);
    if (!worker_->Hold(sentence)) return false;
    const auto held = Clock::now();
    counted_.Is(CountedMove::At::kStandsStill);
    old_->SetMoves("stands still while it moves to " + where_);
    if (!Carry(sentence) || !Switch(sentence)) return false;
    const auto end = Clock::now();
    counted_.Done(end - held, table_.LeasedBy(new_->session()->id()), worker_->calls());
    if (over_) {
      *sentence = "session " + std::to_string(old_->id()) + " has ended as it moved to device " +
                  std::to_string(new_->device()) + ": its program was at its end" + why_;
      return true;
    }
    *sentence = "session " + std::to_string(old_->id()) + " has moved to device " +
                std::to_string(new_->device()) + " and is session " + NewNumber() +
                " there; it was prepared for " + MillisText(held - begun_) +
                " and stood still for " + MillisText(end - held) + TextOf(worker_->calls()) + why_;
    return true;
  }

  // Not where the device was cordoned after the move had begun: whoever drains it does not see the
  // session.
  bool IsWelcome(std::string* sentence) {
    const int32_t device = new_->device();
    *sentence = "device " + std::to_string(device) + " is drained since the move began";
    return !table_.placements_.Cordoned().contains(device);
  }

  Round RebuildAhead(std::string* sentence) {
    *sentence = "it ended meanwhile";
    if (!worker_->WriteAhead()) return Round::kFailed;
    // If the new one refuses, the old one cannot write on.
    const Round round = worker_->HasWrittenAhead(sentence);
    if (round == Round::kNotNow || round == Round::kRefused) return round;
    return new_->IsAhead(sentence) ? round : Round::kFailed;
  }

  bool Check(std::optional<int32_t> device, std::string* sentence) {
    const auto& keepers = old_->worker().keepers;
    *sentence = BoundToItsPlace(old_->client(), *table_.live_.Get());
    if (!sentence->empty()) return false;
    if (keepers.size() != 1) {
      *sentence = "it has several devices";
    } else if (device && keepers.front().device == *device) {
      *sentence = "it is on device " + std::to_string(*device) + " already";
    } else {
      return true;
    }
    return false;
  }

  // In a pool its claim has the new device, too, from here on.
  bool ChoosePlace(PlacedSession* placed, std::string* sentence) {
    const uint64_t bytes = table_.LeasedBy(old_->id());
    placed->time_left = TimeLeft(*old_);
    placed->instead_of = old_->id();
    if (device_) placed->devices = {*device_};
    if (table_.pool_ == nullptr) {
      if (!device_) placed->bytes = bytes;
      return true;
    }
    placed->number = table_.pool_->NumberOf(*old_);
    placed->bytes = old_->client().claimed_bytes;
    *sentence = "no other device of this host has room for it";
    for (int32_t device : device_ ? placed->devices : table_.DevicesFor(*old_, bytes)) {
      has_both_ = table_.pool_->MayMove(*old_, device, sentence);
      placed->devices = {device};
      if (has_both_) break;
    }
    return has_both_;
  }

  bool Carry(std::string* sentence) {
    *sentence = "it ended meanwhile";
    // The new one first: if it refuses, the old one cannot write on.
    return worker_->Write() && new_->IsRebuilt(sentence) && worker_->HasWritten(sentence);
  }

  bool Switch(std::string* sentence) {
    const auto& next = new_->session();
    *sentence = "its logs cannot be handed over";
    if (!next->GoOnFrom(*old_)) return false;
    *sentence = table_.ServeWorker(*next, *next->client().peer.tenant, old_->id());
    if (!sentence->empty()) return false;
    if (!IsWelcome(sentence)) return false;
    *sentence = "it ended meanwhile";
    {
      base::MutexLock lock(table_.mutex_);
      if (table_.ending_ || !table_.sessions_.contains(old_->id()) || !old_->Retire()) return false;
      table_.sessions_.erase(old_->id());
      table_.Enter(next);
    }
    // From here on there is no way back: the old worker must be gone before the new one runs.
    moved_ = true;
    counted_.Is(CountedMove::At::kSwitch);
    new_->Keep();
    bool gone = worker_->End([this] { table_.warden_->Kill(old_->id()); });
    Account();
    table_.Abandon(old_->id());
    if (gone && new_->Go()) {
      table_.HasBegun(next);
      return true;
    }
    return IsOver(gone, sentence);
  }

  // What both have used counts once: the old one's up to here, the new one's from here on.
  void Account() {
    const auto& next = new_->session();
    UsageRecord record = table_.RecordOf(*old_, {0, "moved to session " + NewNumber() + why_});
    table_.usage_->GoesOn(next->id(), record.ended);
    table_.statistics_.GoesOn(next->id(), old_->id());
    const std::chrono::duration<double> seconds = next->opened() - old_->opened();
    table_.identities_.Ended(old_->client().peer, old_->bytes_up(), old_->bytes_down(),
                             seconds.count());
    table_.usage_->Ended(std::move(record));
  }

  // The new worker has not begun. Whether that is right: from the moment at which it is in the
  // table its client may have come, and ended it as any session.
  bool IsOver(bool gone, std::string* sentence) {
    const auto& next = new_->session();
    const auto end = next->end();
    over_ = gone && end && end->code == 0;
    if (over_) return true;
    *sentence = gone ? "its new worker ended at the switch"
                     : "its old worker does not end, so its new one may not begin";
    if (end && !end->sentence.empty()) *sentence += ": " + end->sentence;
    table_.End(next, {static_cast<uint32_t>(transport::kLaunchFailed), *sentence});
    return false;
  }

  std::string NewNumber() const { return std::to_string(new_->session()->id()); }

  SessionTable& table_;
  const std::shared_ptr<ServerSession> old_;
  CountedMove counted_;
  const std::string why_;
  std::optional<int32_t> device_;
  std::string where_;  // for people
  Clock::time_point begun_;
  wire::Descriptor stream_;  // the new worker's end
  std::optional<OldWorker> worker_;
  std::optional<Successor> new_;
  bool has_both_ = false;  // devices, in the pool
  bool moved_ = false;
  bool over_ = false;  // its program ended at the switch
};

void SessionTable::Enter(const std::shared_ptr<ServerSession>& session) {
  sessions_[session->id()] = session;
  for (uint64_t number : session->formerly) moved_[number] = session->id();
}

void SessionTable::HasBegun(const std::shared_ptr<ServerSession>& session) {
  if (session->WorkerIsDead()) {
    End(session, {static_cast<uint32_t>(transport::kLaunchFailed), "its worker ended"});
  }
  std::string sentence;
  if (!MayStay(session, &sentence)) return;  // its limits in time are looked at from now on
  const auto config = live_.Get();
  SendTerms(*config);
  SendNewTerms(config, *session);
  Detached();
}

std::shared_ptr<ServerSession> SessionTable::FindAlsoMoved(uint64_t id) {
  {
    base::MutexLock lock(mutex_);
    auto moved = moved_.find(id);
    // Both are there where a daemon was killed before the old worker had ended: that one goes on.
    if (moved != moved_.end() && !sessions_.contains(id)) id = moved->second;
  }
  return Find(id);
}

std::shared_ptr<ServerSession> SessionTable::FindToMove(uint64_t id, std::string* sentence) {
  auto session = FindAlsoMoved(id);
  if (session == nullptr) {
    *sentence =
        "there is no session " + std::to_string(id) + "; longwire admin sessions lists them";
  } else if (!session->BeginMove()) {
    *sentence = "session " + std::to_string(id) + " is moving already; wait until that has ended";
    return nullptr;
  }
  return session;
}

// Keepers say what is leased every 20 ms: a session that is new here may have more than is known.
uint64_t SessionTable::LeasedBy(uint64_t session) {
  constexpr int kLooks = 5;
  constexpr std::chrono::milliseconds kLookPause{10};
  uint64_t leased = 0;
  for (int look = 0; leased == 0 && look < kLooks; ++look) {
    if (look != 0) std::this_thread::sleep_for(kLookPause);
    std::string sentence;
    auto stats = warden_->GetStats(&sentence);
    if (!stats) return 0;
    for (const warden::SessionStats& seat : stats->sessions) {
      if (seat.session == session) leased += seat.leased;
    }
  }
  return leased;
}

std::vector<int32_t> SessionTable::DevicesFor(const ServerSession& session, uint64_t bytes) {
  std::string sentence;
  auto stats = warden_->GetStats(&sentence);
  std::vector<std::pair<uint64_t, int32_t>> roomy;
  if (stats) {
    for (const auto& [device, free] : placements_.Free(*stats)) {
      const bool here = device == session.worker().keepers.front().device;
      if (!here && free >= bytes) roomy.emplace_back(free, device);
    }
  }
  std::ranges::sort(roomy, std::greater());
  std::vector<int32_t> devices;
  for (const auto& [free, device] : roomy) devices.push_back(device);
  return devices;
}

std::vector<std::string> SessionTable::MoveAwayFrom(int32_t device) {
  constexpr int kLooks = 3;  // some may have been opened just before
  std::vector<std::string> sentences;
  std::set<uint64_t> tried;
  for (int look = 0; look < kLooks; ++look) {
    for (const auto& session : List()) {
      bool there = std::ranges::any_of(
          session->worker().keepers,
          [&](const warden::KeeperProcess& keeper) { return keeper.device == device; });
      if (!there || !tried.insert(session->id()).second) continue;
      Move(session->id(), std::nullopt, &sentences.emplace_back());
    }
  }
  return sentences;
}

bool SessionTable::Told(const ServerSession& session, bool moved, std::string* sentence) {
  if (!moved) {
    *sentence = "session " + std::to_string(session.id()) + " does not move: " + *sentence;
  }
  Log(moved ? LogLevel::kInfo : LogLevel::kWarning, session.subject(), *sentence);
  return moved;
}

bool SessionTable::Move(uint64_t id, std::optional<int32_t> device, std::string* sentence) {
  auto session = FindToMove(id, sentence);
  if (session == nullptr) return false;
  Mover mover(*this, session);
  return Told(*session, mover.Ask(device, sentence) && mover.Go(sentence), sentence);
}

uint64_t SessionTable::MoveAll(const std::vector<scheduler::SessionMove>& moves,
                               const std::string& why, const std::function<bool()>& may_go_on) {
  std::vector<std::pair<std::shared_ptr<ServerSession>, std::unique_ptr<Mover>>> asked;
  std::string sentence;
  for (const scheduler::SessionMove& move : moves) {
    auto session = FindToMove(move.session, &sentence);
    if (session == nullptr) return move.session;
    auto mover = std::make_unique<Mover>(*this, session, why);
    if (!mover->Ask(static_cast<int32_t>(move.to), &sentence)) {
      Told(*session, false, &sentence);
      return move.session;
    }
    asked.emplace_back(std::move(session), std::move(mover));
  }
  for (auto& [session, mover] : asked) {
    sentence = "it would be too late";
    if (!Told(*session, may_go_on() && mover->Go(&sentence), &sentence)) return session->id();
    mover.reset();
  }
  return 0;
}

}  // namespace longwire::daemon
