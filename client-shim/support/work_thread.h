// A thread of ours that does one thing after the other; started when first needed.
#pragma once

#include <atomic>
#include <deque>
#include <functional>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "client-shim/support/never_destroyed.h"
#include "client-shim/support/threads.h"

namespace longwire::shim {

class WorkThread {
 public:
  explicit WorkThread(const char* name) : name_(name) {}

  // More waits only if a server asks for it without end.
  static constexpr size_t kMaxWaiting = size_t{1} << 16;
  // All that was posted and is not done yet, of all threads: tests wait until there is none.
  static inline std::atomic<size_t> unfinished{0};

  // False if so much waits already that this is not done.
  bool Post(std::function<void()> work) {
    base::MutexLock lock(mutex_);
    if (work_.size() >= kMaxWaiting) return false;
    unfinished.fetch_add(1);
    work_.push_back(std::move(work));
    if (!started_) {
      started_ = StartThread(
          name_, [](void* self) { static_cast<WorkThread*>(self)->Run(); }, this);
    }
    wake_.NotifyOne();
    return true;
  }

 private:
  void Run() {
    base::MutexLock lock(mutex_);
    while (true) {
      while (work_.empty()) wake_.Wait(lock);
      std::function<void()> next = std::move(work_.front());
      work_.pop_front();
      lock.Unlock();
      next();
      next = nullptr;
      unfinished.fetch_sub(1);
      lock.Lock();
    }
  }

  const char* const name_;
  base::Mutex mutex_{base::ranks::kWorkThread};
  base::CondVar wake_;
  std::deque<std::function<void()>> work_ LONGWIRE_GUARDED_BY(mutex_);
  bool started_ LONGWIRE_GUARDED_BY(mutex_) = false;
};

}  // namespace longwire::shim
