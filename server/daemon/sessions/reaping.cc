// Ends sessions whose clients do not come back in time, and those whose time limit is over.
#include "link/transport/codes.h"
#include "server/config/config.h"
#include "server/daemon/sessions/session_table.h"

namespace longwire::daemon {
namespace {

// A client that opened a session attaches at once; one that died in between must not hold a worker.
constexpr std::chrono::seconds kFirstAttachPatience{3};
constexpr std::chrono::milliseconds kReapLook{250};

}  // namespace

void SessionTable::Detached() {
  {
    base::MutexLock lock(mutex_);
    detached_ = true;
  }
  changed_.NotifyAll();
}

// True while its limit has to be looked at again.
bool SessionTable::EndAfterLimit(const std::shared_ptr<ServerSession>& session) {
  const uint64_t limit = session->client().time_limit;
  if (limit == 0) return false;
  if (Clock::now() - session->opened() < std::chrono::seconds(limit)) return true;
  const std::string seconds = std::to_string(limit) + " s";
  const bool moved = !session->formerly.empty() || session->client().limit_is_rest;
  const std::string over =
      moved ? "its time limit is over; when it moved, " + seconds + " of it were left"
            : "its time limit of " + seconds + " is over";
  End(session, {static_cast<uint32_t>(transport::kLaunchFailed),
                over + " (--time-limit, LONGWIRE_TIME_LIMIT)"});
  return false;
}

void SessionTable::ReapLoop() {
  base::MutexLock lock(mutex_);
  while (!ending_) {
    // No detached session and none with a limit: sleeps until there is one.
    while (!ending_ && !detached_) changed_.Wait(lock);
    auto look = Clock::now() + kReapLook;
    while (!ending_ && changed_.WaitUntil(lock, look)) {
    }
    detached_ = false;
    lock.Unlock();
    bool detached = EndLateSuspended();
    for (const auto& session : List()) {
      detached |= EndAfterLimit(session);
      bool attached_before = session->epoch() != 0;
      auto patience = attached_before ? config::ResumeGrace(*live_.Get())
                                      : std::chrono::milliseconds(kFirstAttachPatience);
      Clock::time_point since = session->detached_since();
      if (since == Clock::time_point::max() || session->moving()) continue;
      detached = true;
      if (Clock::now() - since < patience) continue;
      End(session, {static_cast<uint32_t>(transport::kLaunchFailed),
                    attached_before ? "its connection broke" : "its client never came back"});
    }
    lock.Lock();
    detached_ |= detached;
  }
}

}  // namespace longwire::daemon
