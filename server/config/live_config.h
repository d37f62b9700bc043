// The configuration that is in force. Readers take a snapshot and keep it as long as they need; a
// reload puts another in its place at once and as a whole. Thread-safe.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "proto/config.pb.h"

namespace longwire::config {

class LiveConfig {
 public:
  using Snapshot = std::shared_ptr<const Config>;

  explicit LiveConfig(Config first) : now_(std::make_shared<const Config>(std::move(first))) {}

  Snapshot Get() const {
    std::lock_guard lock(mutex_);
    return now_;
  }

  // `told` is called with each later configuration, before Replace returns, never twice at once.
  // Subscribers must outlive the replacing; nobody unsubscribes.
  void Subscribe(std::function<void(const Config&)> told) {
    std::lock_guard lock(replace_mutex_);
    subscribers_.push_back(std::move(told));
  }

  void Replace(Config next) {
    std::lock_guard replacing(replace_mutex_);
    auto snapshot = std::make_shared<const Config>(std::move(next));
    {
      std::lock_guard lock(mutex_);
      now_ = snapshot;
    }
    for (const auto& told : subscribers_) told(*snapshot);
  }

 private:
  std::mutex replace_mutex_;                                     // before mutex_
  std::vector<std::function<void(const Config&)>> subscribers_;  // under replace_mutex_
  mutable std::mutex mutex_;
  Snapshot now_;  // under mutex_
};

}  // namespace longwire::config
