// Threads for slow work, so that the keeper's loop is not blocked: one, unless more are asked for.
// Jobs are begun in order and returned one by one.
#pragma once

#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <deque>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "wire/socket.h"

namespace longwire::keeper {

template <class Job>
class JobThread {
 public:
  explicit JobThread(std::function<void(Job&)> work, size_t threads = 1)
      : work_(std::move(work)), event_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    for (size_t i = 0; i < threads; ++i) threads_.emplace_back([this] { Run(); });
  }

  // Finishes the current jobs.
  ~JobThread() {
    {
      base::MutexLock lock(mutex_);
      stop_ = true;
    }
    changed_.NotifyAll();
    for (std::thread& thread : threads_) thread.join();
  }

  void Add(std::vector<Job> jobs) {
    if (jobs.empty()) return;
    waiting_ += jobs.size();
    {
      base::MutexLock lock(mutex_);
      for (Job& job : jobs) jobs_.push_back(std::move(job));
    }
    changed_.NotifyAll();
  }
  size_t waiting() const { return waiting_; }  // jobs not yet returned by Take
  // Readable when jobs are done; Take then returns them.
  int descriptor() const { return event_.get(); }
  std::vector<Job> Take() {
    uint64_t count = 0;
    (void)!read(event_.get(), &count, sizeof(count));
    base::MutexLock lock(mutex_);
    waiting_ -= done_.size();
    return std::exchange(done_, {});
  }

 private:
  void Run() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, nullptr);
    base::MutexLock lock(mutex_);
    while (true) {
      while (!stop_ && jobs_.empty()) changed_.Wait(lock);
      if (stop_) return;
      Job job = std::move(jobs_.front());
      jobs_.pop_front();
      lock.Unlock();
      work_(job);
      lock.Lock();
      done_.push_back(std::move(job));
      uint64_t one = 1;
      (void)!write(event_.get(), &one, sizeof(one));
    }
  }

  const std::function<void(Job&)> work_;
  wire::Descriptor event_;
  size_t waiting_ = 0;  // used by the owner's thread only
  base::Mutex mutex_{base::ranks::kJobThread};
  base::CondVar changed_;
  std::deque<Job> jobs_ LONGWIRE_GUARDED_BY(mutex_);
  std::vector<Job> done_ LONGWIRE_GUARDED_BY(mutex_);
  bool stop_ LONGWIRE_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;  // last: they use all of the above
};

}  // namespace longwire::keeper
