// A thread of ours that does one thing after the other; started when first needed.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>

#include "client-shim/support/never_destroyed.h"
#include "client-shim/support/threads.h"

namespace longwire::shim {

class WorkThread {
 public:
  explicit WorkThread(const char* name) : name_(name) {}

  void Post(std::function<void()> work) {
    std::lock_guard<std::mutex> lock(mutex_);
    work_.push_back(std::move(work));
    if (!started_) {
      started_ = StartThread(
          name_, [](void* self) { static_cast<WorkThread*>(self)->Run(); }, this);
    }
    wake_.notify_one();
  }

 private:
  void Run() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (true) {
      wake_.wait(lock, [this] { return !work_.empty(); });
      std::function<void()> next = std::move(work_.front());
      work_.pop_front();
      lock.unlock();
      next();
      lock.lock();
    }
  }

  const char* const name_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> work_;
  bool started_ = false;
};

}  // namespace longwire::shim
