// The configuration that is in force. Readers take a snapshot and keep it as long as they need; a
// reload puts another in its place at once and as a whole. Thread-safe.
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "proto/config.pb.h"

namespace longwire::config {

class LiveConfig {
 public:
  using Snapshot = std::shared_ptr<const Config>;

  explicit LiveConfig(Config first) : now_(std::make_shared<const Config>(std::move(first))) {}

  Snapshot Get() const {
    base::MutexLock lock(mutex_);
    return now_;
  }

  // `told` is called with each later configuration, before Replace returns, never twice at once.
  // Subscribers must outlive the replacing; nobody unsubscribes.
  void Subscribe(std::function<void(const Config&)> told) {
    base::MutexLock lock(replace_mutex_);
    subscribers_.push_back(std::move(told));
  }

  void Replace(Config next) {
    base::MutexLock replacing(replace_mutex_);
    auto snapshot = std::make_shared<const Config>(std::move(next));
    {
      base::MutexLock lock(mutex_);
      now_ = snapshot;
    }
    for (const auto& told : subscribers_) told(*snapshot);
  }

 private:
  // Without a rank: subscribers may wait.
  base::Mutex replace_mutex_ LONGWIRE_ACQUIRED_BEFORE(mutex_);
  std::vector<std::function<void(const Config&)>> subscribers_ LONGWIRE_GUARDED_BY(replace_mutex_);
  mutable base::Mutex mutex_{base::ranks::kLiveConfig};
  Snapshot now_ LONGWIRE_GUARDED_BY(mutex_);
};

}  // namespace longwire::config
