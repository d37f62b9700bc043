// A session's threads may stay awake between its messages: instead of sleeping they go on spinning
// until nothing has come for as long as they are allowed to (docs/decisions/0060). Off for a
// process with LONGWIRE_DISABLE=awake.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace longwire::wire {

// Of one session in one process. Thread-safe.
class Awake {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // Nanoseconds after the last message, 0: none; and the processor time that this has cost. Both
  // may lie in memory that others write, and outlive this. Called before anything else, or never:
  // then nobody stays awake.
  void Follow(const std::atomic<uint64_t>* allowed, std::atomic<uint64_t>* spent);

  // A message came or went.
  void Moved(Time when) { moved_.store(Count(when), std::memory_order_relaxed); }
  // Whether a thread that would sleep now goes on spinning.
  bool Stays(Time now) const {
    if (allowed_ == nullptr) return false;
    const uint64_t allowed = allowed_->load(std::memory_order_relaxed);
    if (allowed == 0) return false;
    const int64_t rest = Count(now) - moved_.load(std::memory_order_relaxed);
    return rest < 0 || static_cast<uint64_t>(rest) < allowed;
  }

 private:
  friend class AwakeWait;
  static int64_t Count(Time time) {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
  }

  const std::atomic<uint64_t>* allowed_ = nullptr;
  std::atomic<uint64_t>* spent_ = nullptr;
  std::atomic<int64_t> moved_{0};
};

// One thread's wait in which it may stay awake. Counts what that costs; what is spun before, as
// without it, does not count.
class AwakeWait {
 public:
  explicit AwakeWait(Awake& awake) : awake_(awake) {}
  ~AwakeWait() { Charge(); }
  AwakeWait(const AwakeWait&) = delete;
  AwakeWait& operator=(const AwakeWait&) = delete;

  // The thread would sleep now: whether it spins instead, and then asks again.
  bool Stays(Awake::Time now);

 private:
  void Charge();

  Awake& awake_;
  uint64_t since_ = 0;  // the thread's processor time; 0: it has not stayed awake yet
  Awake::Time charged_at_{};
};

}  // namespace longwire::wire
