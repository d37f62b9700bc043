#include "server/daemon/notify.h"

#include <grpcpp/alarm.h>

#include <future>

#include "link/transport/log.h"
#include "link/transport/ring_at_once.h"
#include "wire/guards.h"

namespace longwire::daemon {
namespace {

using std::chrono::microseconds;

// Beats per watchdog interval: two may come late before the manager loses patience.
constexpr int kBeats = 3;

// An event for the loop that comes at once.
class Question final : public AcceptLoop::Waiting {
 public:
  std::future<void> Ask(AcceptLoop& loop) {
    std::future<void> answer = answer_.get_future();
    transport::RingAtOnce(&alarm_, &loop.queue(), static_cast<Waiting*>(this));
    return answer;
  }
  void Happened(bool) override { answer_.set_value(); }

 private:
  grpc::Alarm alarm_;
  std::promise<void> answer_;
};

timespec TimeSpec(microseconds time) {
  return {static_cast<time_t>(time.count() / 1'000'000),
          static_cast<long>(time.count() % 1'000'000 * 1'000)};
}

}  // namespace

bool LoopAnswers(AcceptLoop& loop, microseconds patience) {
  if (wire::GuardIsOff("watchdog")) return true;
  auto* question = new Question;  // deletes itself
  return question->Ask(loop).wait_for(patience) == std::future_status::ready;
}

void Notifier::Ready(std::string_view status) {
  base::MutexLock lock(mutex_);
  status_ = status;
  manager_.Notify("READY=1\nSTATUS=" + status_);
}

void Notifier::Reloading() { manager_.Notify("RELOADING=1\n" + service::MonotonicLine()); }

void Notifier::Stopping() { manager_.Notify("STOPPING=1\nSTATUS=ending"); }

int Notifier::WaitForSignal(const sigset_t& signals) {
  const microseconds interval = manager_.watchdog() / kBeats;
  if (interval.count() == 0) {
    int signal = 0;
    sigwait(&signals, &signal);
    return signal;
  }
  const timespec timeout = TimeSpec(interval);
  while (true) {
    int signal = sigtimedwait(&signals, nullptr, &timeout);
    if (signal > 0) return signal;
    if (errno == EAGAIN) Beat(interval);
  }
}

void Notifier::Beat(microseconds patience) {
  // A table whose lock is never released holds this thread up, and nothing is said either.
  size_t sessions = accept_.table().List().size();
  if (LoopAnswers(accept_, patience)) {
    base::MutexLock lock(mutex_);
    manager_.Notify("WATCHDOG=1\nSTATUS=" + status_ + "; sessions: " + std::to_string(sessions));
  } else {
    transport::Log(transport::LogLevel::kError,
                   "calls are not taken up any more; the service manager will restart longwired");
  }
}

}  // namespace longwire::daemon
