#include "web/task_queue.h"

#include "base/start_thread.h"
#include "link/transport/log.h"

namespace longwire::web {

BoundedQueue::BoundedQueue(size_t threads, size_t waiting) : waiting_(waiting) {
  for (size_t i = 0; i < threads; ++i) {
    std::thread thread;
    if (!base::StartThread(&thread, [this] { Loop(); })) break;
    threads_.push_back(std::move(thread));
  }
  if (threads_.size() < threads) {
    transport::Log(transport::LogLevel::kWarning,
                   "only " + std::to_string(threads_.size()) + " threads could be started");
  }
}

void BoundedQueue::enqueue(std::function<void()> task) {
  base::MutexLock lock(mutex_);
  while (tasks_.size() >= waiting_ && !ending_) changed_.Wait(lock);
  tasks_.push_back(std::move(task));
  changed_.NotifyAll();
}

// What waits is served first: each task has a socket to close.
void BoundedQueue::shutdown() {
  {
    base::MutexLock lock(mutex_);
    ending_ = true;
  }
  changed_.NotifyAll();
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

void BoundedQueue::Loop() {
  base::MutexLock lock(mutex_);
  while (true) {
    while (tasks_.empty() && !ending_) changed_.Wait(lock);
    if (tasks_.empty()) return;
    std::function<void()> task = std::move(tasks_.front());
    tasks_.pop_front();
    changed_.NotifyAll();
    lock.Unlock();
    task();
    lock.Lock();
  }
}

}  // namespace longwire::web
