// Who has a session that has gone to another server, where the answer was not heard: this server
// asks until it knows. And what is kept of moves between servers is forgotten in time.
#include <algorithm>
#include <ctime>

#include "link/transport/codes.h"
#include "link/transport/log.h"
#include "server/config/config.h"
#include "server/daemon/moving/arrival.h"
#include "server/daemon/moving/far_server.h"
#include "server/daemon/moving/old_worker.h"
#include "server/daemon/sessions/session_table.h"

namespace longwire::daemon {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using transport::Log;
using transport::LogLevel;

constexpr milliseconds kSettleWait{500};
constexpr milliseconds kSettleAnswer{3'000};
// A link that waits comes back within this time.
constexpr seconds kLastLook{10};
// Longer than any server asks about a move that it has made.
constexpr seconds kComeKept{3'600};

uint64_t SystemSeconds() { return static_cast<uint64_t>(time(nullptr)); }

seconds SecondsSince(uint64_t since) {
  return seconds(SystemSeconds() - std::min(since, SystemSeconds()));
}

}  // namespace

void SessionTable::SettleGone(const std::shared_ptr<ServerSession>& session) {
  auto gone = move_notes_.Find(session->id());
  if (!gone || gone->number() != session->id()) return;
  // As long as its old worker is there nobody has told the other server to begin.
  if (gone->begun == 0 && OldWorker::GoesOn(session)) {
    move_notes_.Remove(session->id());
    return Log(LogLevel::kWarning, session->subject(),
               "goes on here: the daemon before this one ended while it was moved to server " +
                   gone->server);
  }
  if (!TakeOut(session, "moved to server " + gone->server)) return;
  Log(LogLevel::kInfo, session->subject(), "has moved to server " + gone->server);
}

void SessionTable::LoseGone(const GoneSession& gone, const std::string& why) {
  if (!move_notes_.Find(gone.number())) return;
  Log(LogLevel::kError, {.session = gone.number(), .tenant = gone.tenant},
      "was lost on its way to server " + gone.server + ": " + why);
  move_figures_.Lost(MoveKind::kServer);
  {
    base::MutexLock lock(mutex_);
    for (uint64_t number : gone.numbers) {
      farewells_.Add(number, gone.identity, gone.tenant,
                     "it was lost on its way to another server, " + gone.server + ": " + why,
                     std::max<milliseconds>(config::ResumeGrace(*live_.Get()), kLastLook));
    }
  }
  // Last: until then its client waits.
  move_notes_.Remove(gone.number());
}

std::optional<GoneSession> SessionTable::GoneTo(const transport::Attach& attach, const Peer& peer) {
  auto gone = move_notes_.Find(attach.session);
  if (!gone || !ShowsRight(gone->lanes, gone->identity, gone->tenant, attach, peer)) {
    return std::nullopt;
  }
  return gone;
}

void SessionTable::Unsettled() {
  {
    base::MutexLock lock(mutex_);
    unsettled_ = true;
  }
  unsettled_changed_.NotifyAll();
}

void SessionTable::SettleLoop() {
  base::MutexLock lock(mutex_);
  while (!ending_) {
    while (!ending_ && !unsettled_) unsettled_changed_.Wait(lock);
    auto look = Clock::now() + kSettleWait;
    while (!ending_ && unsettled_changed_.WaitUntil(lock, look)) {
    }
    unsettled_ = false;
    if (ending_) return;
    lock.Unlock();
    bool more = SettleAll();
    more |= EndLateArrivals();
    lock.Lock();
    unsettled_ |= more;
  }
}

// False if there is nothing to be asked or forgotten any more.
bool SessionTable::SettleAll() {
  const seconds kept = std::chrono::ceil<seconds>(config::ResumeGrace(*live_.Get())) + kLastLook;
  for (const GoneSession& gone : move_notes_.List()) {
    {
      base::MutexLock lock(mutex_);
      if (ending_) return false;
    }
    if (gone.begun != 0) {
      if (SecondsSince(gone.begun) > kept) move_notes_.Remove(gone.number());
    } else if (move_notes_.Claim(gone.number())) {
      Settle(gone);
      move_notes_.GiveBack(gone.number());
    }
  }
  move_notes_.RemoveComeBefore(SystemSeconds() - static_cast<uint64_t>(kComeKept.count()));
  return !move_notes_.empty();
}

void SessionTable::Settle(const GoneSession& gone) {
  FarServer far(gone.server);
  const transport::TlsMaterial tls = material_ ? material_() : transport::TlsMaterial();
  transport::HandOverStep step;
  step.mutable_end()->set_move(gone.move);
  step.mutable_end()->set_kind(transport::HandOverEnd::BEGIN);
  transport::HandOverAnswer answer;
  std::string sentence;
  if (!far.Connect(tls.certificate.empty() ? nullptr : &tls, &sentence) ||
      !far.Ask(step, kSettleAnswer, &answer, &sentence)) {
    const seconds kept = std::chrono::ceil<seconds>(config::ResumeGrace(*live_.Get())) + kLastLook;
    if (SecondsSince(gone.since) > seconds(gone.patience) + kept) LoseGone(gone, sentence);
    return;
  }
  if (!answer.done()) return LoseGone(gone, answer.sentence());
  move_notes_.SetBegun(gone.number());
  move_figures_.DoneLate(MoveKind::kServer);
  Log(LogLevel::kInfo, {.session = gone.number(), .tenant = gone.tenant},
      "has begun at server " + gone.server + ", where it is session " +
          std::to_string(gone.session));
  step.mutable_end()->set_kind(transport::HandOverEnd::FORGET);
  (void)far.Ask(step, kSettleAnswer, &answer, &sentence);
  far.End();
}

}  // namespace longwire::daemon
