// Reads all that etcd has of the pool, for those who look at it: many may ask at once, and are not
// held up for long when etcd does not answer. Thread-safe.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "server/pool/directory.h"

namespace longwire::pool {

class Reader {
 public:
  explicit Reader(etcd::Client& client) : client_(client) {}
  ~Reader() { Stop(); }

  // False with a sentence where the system starts no thread.
  bool Start(std::string* sentence);
  void Stop();

  // As it is in etcd at some time after the call; nullptr with a sentence when etcd does not
  // answer: after seconds at first, and soon while it goes on.
  std::shared_ptr<const Directory> Read(std::string* sentence);

 private:
  using Clock = std::chrono::steady_clock;
  void Loop();

  etcd::Client& client_;
  std::thread thread_;
  base::Mutex mutex_{base::ranks::kPoolReader};
  base::CondVar changed_;
  bool stop_ LONGWIRE_GUARDED_BY(mutex_) = false;
  uint64_t asked_ LONGWIRE_GUARDED_BY(mutex_) = 0;     // calls of Read
  uint64_t begun_ LONGWIRE_GUARDED_BY(mutex_) = 0;     // of these: the last reading is after them
  uint64_t answered_ LONGWIRE_GUARDED_BY(mutex_) = 0;  // likewise, and it is over
  Clock::time_point since_ LONGWIRE_GUARDED_BY(mutex_){};  // when it began
  std::shared_ptr<const Directory> directory_ LONGWIRE_GUARDED_BY(mutex_);
  bool failed_ LONGWIRE_GUARDED_BY(mutex_) = false;  // the last reading
  std::string sentence_ LONGWIRE_GUARDED_BY(mutex_);
};

}  // namespace longwire::pool
