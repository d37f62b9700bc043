// How many lines of one source go to a log: a burst, then a rate. Counts the lines left out. Not
// thread-safe.
#pragma once

#include <cstdint>
#include <utility>

#include "base/token_bucket.h"

namespace longwire::base {

class LineLimit {
 public:
  using Clock = TokenBucket::Clock;

  LineLimit(double per_second, double burst, Clock::time_point now)
      : bucket_(per_second, burst, now) {}

  void Change(double per_second, double burst) { bucket_.Change(per_second, burst); }

  // True if a line may be written now.
  bool Allows(Clock::time_point now) {
    if (bucket_.Take(now)) return true;
    ++left_out_;
    return false;
  }

  // How many lines were left out since the last call.
  uint64_t TakeLeftOut() { return std::exchange(left_out_, 0); }
  uint64_t left_out() const { return left_out_; }
  // True when it is as if nothing had ever been written.
  bool IsIdle(Clock::time_point now) const { return left_out_ == 0 && bucket_.IsFull(now); }

 private:
  TokenBucket bucket_;
  uint64_t left_out_ = 0;
};

}  // namespace longwire::base
