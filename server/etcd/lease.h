// A lease that is kept alive by a thread of its own, and replaced by another one when etcd has lost
// it. Thread-safe.
#pragma once

#include <atomic>
#include <string>
#include <thread>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "server/etcd/client.h"

namespace longwire::etcd {

class Lease {
 public:
  Lease(Client& client, int64_t seconds) : client_(client), seconds_(seconds) {}
  ~Lease() { Stop(); }

  // False with a sentence where the system starts no thread.
  bool Start(std::string* sentence);
  // Revokes it: its keys are gone at once.
  void Stop();
  // 0: there is none now. Another number: all keys of the earlier one are gone, or soon are.
  int64_t id() const { return id_.load(); }
  // Why etcd does not answer; empty: it does.
  std::string problem() const;

 private:
  void Loop();
  bool Pause();

  Client& client_;
  const int64_t seconds_;
  std::atomic<int64_t> id_{0};
  std::thread thread_;
  mutable base::Mutex mutex_{base::ranks::kEtcdLease};
  base::CondVar stopped_;
  bool stop_ LONGWIRE_GUARDED_BY(mutex_) = false;
  std::string problem_ LONGWIRE_GUARDED_BY(mutex_);
};

}  // namespace longwire::etcd
