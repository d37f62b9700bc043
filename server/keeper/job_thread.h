// A thread for work that takes long, so that the keeper's loop answers others meanwhile. Jobs are
// done in order, and handed back one by one.
#pragma once

#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "wire/socket.h"

namespace longwire::keeper {

template <class Job>
class JobThread {
 public:
  explicit JobThread(std::function<void(Job&)> work)
      : work_(std::move(work)),
        event_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        thread_([this] { Run(); }) {}

  // Finishes the job it has.
  ~JobThread() {
    {
      std::lock_guard lock(mutex_);
      stop_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }

  void Add(std::vector<Job> jobs) {
    if (jobs.empty()) return;
    waiting_ += jobs.size();
    {
      std::lock_guard lock(mutex_);
      for (Job& job : jobs) jobs_.push_back(std::move(job));
    }
    changed_.notify_one();
  }
  size_t waiting() const { return waiting_; }  // jobs that were not taken back yet
  // Readable when jobs are done; then Take hands them back.
  int descriptor() const { return event_.get(); }
  std::vector<Job> Take() {
    uint64_t count = 0;
    (void)!read(event_.get(), &count, sizeof(count));
    std::lock_guard lock(mutex_);
    waiting_ -= done_.size();
    return std::exchange(done_, {});
  }

 private:
  void Run() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, nullptr);
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return stop_ || !jobs_.empty(); });
      if (stop_) return;
      Job job = std::move(jobs_.front());
      jobs_.pop_front();
      lock.unlock();
      work_(job);
      lock.lock();
      done_.push_back(std::move(job));
      uint64_t one = 1;
      (void)!write(event_.get(), &one, sizeof(one));
    }
  }

  const std::function<void(Job&)> work_;
  wire::Descriptor event_;
  size_t waiting_ = 0;  // used by the owner's thread only
  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_.
  std::deque<Job> jobs_;
  std::vector<Job> done_;
  bool stop_ = false;
  std::thread thread_;  // last: starts when all of the above exists
};

}  // namespace longwire::keeper
