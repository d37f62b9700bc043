// The threads that serve connections: a fixed number, and a bounded line before them. Who comes
// when it is full waits in the kernel's.
#pragma once

#include <httplib.h>

#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "base/lock_ranks.h"
#include "base/mutex.h"

namespace longwire::web {

class BoundedQueue final : public httplib::TaskQueue {
 public:
  BoundedQueue(size_t threads, size_t waiting);
  ~BoundedQueue() override { shutdown(); }

  void enqueue(std::function<void()> task) override;
  void shutdown() override;

 private:
  void Loop();

  const size_t waiting_;
  std::vector<std::thread> threads_;
  base::Mutex mutex_{base::ranks::kWebTasks};
  base::CondVar changed_;
  std::deque<std::function<void()>> tasks_ LONGWIRE_GUARDED_BY(mutex_);
  bool ending_ LONGWIRE_GUARDED_BY(mutex_) = false;
};

}  // namespace longwire::web
