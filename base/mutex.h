// Mutual exclusion that the compiler checks: members say which mutex guards them
// (LONGWIRE_GUARDED_BY), functions which one their caller holds (LONGWIRE_REQUIRES), and clang
// refuses what does not follow. Mutexes with a rank are also checked for their order while the
// program runs (lock_order.h). Standard library only; without checks it costs what std::mutex
// costs.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "base/lock_order.h"
#include "base/thread_annotations.h"

namespace longwire::base {

class LONGWIRE_CAPABILITY("mutex") Mutex {
 public:
  // Without a rank: for a mutex that may be held while its thread waits for others, and for those
  // of tests. docs/threads.md lists the former.
  constexpr Mutex() = default;
  constexpr explicit Mutex([[maybe_unused]] const LockRank& rank)
#if LONGWIRE_LOCK_CHECKS
      : rank_(&rank)
#endif
  {
  }
  explicit Mutex(const LockRank&&) = delete;  // the rank outlives the mutex
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void Lock() LONGWIRE_ACQUIRE() {
#if LONGWIRE_LOCK_CHECKS
    if (rank_ != nullptr) PushLock(this, *rank_);
#endif
    mutex_.lock();
  }

  // False, at once, if another thread holds it. It is taken in the order of ranks all the same.
  bool TryLock() LONGWIRE_TRY_ACQUIRE(true) {
    if (!mutex_.try_lock()) return false;
#if LONGWIRE_LOCK_CHECKS
    if (rank_ != nullptr) PushLock(this, *rank_);
#endif
    return true;
  }

  void Unlock() LONGWIRE_RELEASE() {
#if LONGWIRE_LOCK_CHECKS
    if (rank_ != nullptr) PopLock(this);  // before another thread can destroy the mutex
#endif
    mutex_.unlock();
  }

  // Tells the analysis that this thread holds it: in a lambda that runs with the lock held.
  void AssertHeld() const LONGWIRE_ASSERT_CAPABILITY(this) {
#if LONGWIRE_LOCK_CHECKS
    if (rank_ != nullptr) AssertLockHeld(this, *rank_);
#endif
  }

 private:
  friend class CondVar;
  std::mutex mutex_;
#if LONGWIRE_LOCK_CHECKS
  const LockRank* rank_ = nullptr;
#endif
};

// For a MutexLock that takes over a mutex which this thread holds already, as after TryLock.
struct AdoptLock {};

// Holds a mutex while it lives; Unlock and Lock let go of it in between.
class LONGWIRE_SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) LONGWIRE_ACQUIRE(mutex) : mutex_(mutex) { mutex_.Lock(); }
  MutexLock(Mutex& mutex, AdoptLock) LONGWIRE_REQUIRES(mutex) : mutex_(mutex) {}
  ~MutexLock() LONGWIRE_RELEASE() {
    if (holds_) mutex_.Unlock();
  }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

  void Unlock() LONGWIRE_RELEASE() {
    mutex_.Unlock();
    holds_ = false;
  }
  void Lock() LONGWIRE_ACQUIRE() {
    mutex_.Lock();
    holds_ = true;
  }

 private:
  friend class CondVar;
  Mutex& mutex_;
  bool holds_ = true;
};

// Waits until another thread says that something changed. Every wait releases the mutex and takes
// it again, and may return for no reason: it stands in a loop over its condition. There is no form
// with a predicate, because the analysis does not know that a lambda runs with the lock held.
class CondVar {
 public:
  void NotifyOne() { condition_.notify_one(); }
  void NotifyAll() { condition_.notify_all(); }

  void Wait(MutexLock& lock) {
    Borrowed borrowed(lock);
    condition_.wait(borrowed.lock);
  }

  // False when the time is over.
  template <class Clock, class Duration>
  bool WaitUntil(MutexLock& lock, std::chrono::time_point<Clock, Duration> deadline) {
    Borrowed borrowed(lock);
    return condition_.wait_until(borrowed.lock, deadline) == std::cv_status::no_timeout;
  }

 private:
  // The mutex as the standard library's condition variable takes it, which leaves it held.
  struct Borrowed {
    explicit Borrowed(MutexLock& held) : lock(held.mutex_.mutex_, std::adopt_lock) {
#if LONGWIRE_LOCK_CHECKS
      AssertNoRankedLockHeldBut(&held.mutex_);
#endif
    }
    ~Borrowed() { lock.release(); }
    std::unique_lock<std::mutex> lock;
  };

  std::condition_variable condition_;
};

}  // namespace longwire::base
