// How fast each identity may open sessions. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "base/token_bucket.h"

namespace longwire::admission {

class Openings {
 public:
  using Clock = base::TokenBucket::Clock;
  struct Rate {
    double per_second = 0;
    double at_once = 0;
  };
  // Longer than this an opening does not wait: clients give up after four to five seconds, and a
  // worker may have to be started.
  static constexpr std::chrono::seconds kPatience{3};

  // Counts a session of the identity, which may open in *wait, at most kPatience. False if it would
  // have to wait longer: then nothing is counted.
  bool Reserve(const std::string& identity, Rate rate, Clock::time_point now,
               Clock::duration* wait);
  // The same, and waits; also false when *cancelled is set meanwhile.
  bool Await(const std::string& identity, Rate rate, const std::atomic<bool>& cancelled);

  uint64_t refused() const { return refused_.load(); }

 private:
  void Forget(Clock::time_point now) LONGWIRE_REQUIRES(mutex_);

  std::atomic<uint64_t> refused_{0};
  base::Mutex mutex_{base::ranks::kOpenings};
  std::map<std::string, base::TokenBucket> identities_ LONGWIRE_GUARDED_BY(mutex_);
};

}  // namespace longwire::admission
