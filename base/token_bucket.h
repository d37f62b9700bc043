// A rate with a burst: tokens come back at the rate, up to the burst; what happens takes one.
// Time is an input. Not thread-safe.
#pragma once

#include <algorithm>
#include <chrono>

namespace longwire::base {

class TokenBucket {
 public:
  using Clock = std::chrono::steady_clock;

  TokenBucket(double per_second, double burst, Clock::time_point now)
      : per_second_(per_second), burst_(burst), tokens_(burst), filled_(now) {}

  void Change(double per_second, double burst) {
    per_second_ = per_second;
    burst_ = burst;
  }

  bool Take(Clock::time_point now) {
    Fill(now);
    if (tokens_ < 1) return false;
    tokens_ -= 1;
    return true;
  }

  // Takes a token that comes in at most `patience`, and returns how long that takes; a negative
  // time if it takes longer, and then none is taken. Those who come later wait longer.
  Clock::duration Reserve(Clock::time_point now, Clock::duration patience) {
    Fill(now);
    const std::chrono::duration<double> wait(std::max(0.0, (1 - tokens_) / per_second_));
    if (wait > patience) return Clock::duration(-1);
    tokens_ -= 1;
    return std::chrono::duration_cast<Clock::duration>(wait);
  }

  bool IsFull(Clock::time_point now) const { return TokensAt(now) >= burst_; }

 private:
  double TokensAt(Clock::time_point now) const {
    const std::chrono::duration<double> passed = now - filled_;
    return std::min(burst_, tokens_ + passed.count() * per_second_);
  }
  void Fill(Clock::time_point now) {
    tokens_ = TokensAt(now);
    filled_ = now;
  }

  double per_second_;
  double burst_;
  double tokens_;
  Clock::time_point filled_;
};

}  // namespace longwire::base
