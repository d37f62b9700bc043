#include "server/etcd/lease.h"

#include <cerrno>
#include <chrono>

#include "base/reason.h"
#include "base/start_thread.h"

namespace longwire::etcd {
namespace {

constexpr std::chrono::milliseconds kPause{1000};

}  // namespace

bool Lease::Start(std::string* sentence) {
  if (base::StartThread(&thread_, [this] { Loop(); })) return true;
  *sentence = base::ReasonOfNoThread(errno);
  return false;
}

void Lease::Stop() {
  {
    base::MutexLock lock(mutex_);
    if (stop_) return;
    stop_ = true;
  }
  stopped_.NotifyAll();
  if (thread_.joinable()) thread_.join();
  std::string sentence;
  if (id() != 0) client_.Revoke(id_.exchange(0), &sentence);  // else it ends by itself
}

std::string Lease::problem() const {
  base::MutexLock lock(mutex_);
  return problem_;
}

bool Lease::Pause() {
  const auto deadline = std::chrono::steady_clock::now() + kPause;
  base::MutexLock lock(mutex_);
  while (!stop_ && stopped_.WaitUntil(lock, deadline)) {
  }
  return !stop_;
}

void Lease::Loop() {
  do {
    std::string sentence;
    bool alive = false, answered = true;
    if (id() != 0) answered = client_.KeepAlive(id(), &alive, &sentence);
    if (answered && !alive) {
      int64_t next = 0;
      id_.store(0);
      if (client_.Grant(seconds_, &next, &sentence)) id_.store(next);
    }
    base::MutexLock lock(mutex_);
    problem_ = sentence;
  } while (Pause());
}

}  // namespace longwire::etcd
