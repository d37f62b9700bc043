// Finds out whether a policy's hook is too slow, also if it is only now and then. Each run of one
// that could be is measured by the processor's counter. A slow one casts suspicion: the runs after
// it are measured in time of the processor, for a thread that was interrupted is not a slow policy.
// Suspicion goes when a minute and a thousand runs have passed without a slow one. Thread-safe.
#pragma once

#include <x86intrin.h>

#include <atomic>
#include <cstdint>

namespace longwire::policy {

inline constexpr uint64_t kLongestRun = 10'000;  // ns
// This number of runs that are slow in time of the processor, each soon behind the one before, ends
// the policy.
inline constexpr uint32_t kSlowRuns = 3;
inline constexpr uint64_t kForgottenAfterRuns = 1000;
inline constexpr uint64_t kForgottenAfter = 60'000'000'000;  // ns

// How many ticks of the processor's counter a nanosecond has; measured once, in 200 us.
double TicksPerNanosecond();

class Watch {
 public:
  Watch();

  // Ticks that a run may take.
  uint64_t limit() const { return limit_; }
  bool suspects() const { return suspects_.load(std::memory_order_relaxed); }
  // A run took longer than the limit: the number of the run, and the counter at its end.
  void Suspect(uint64_t run, uint64_t counter);
  // While there is suspicion: a run took so much of the processor's time. True: it was one too
  // many.
  bool IsTooMuch(uint64_t nanoseconds, uint64_t run, uint64_t counter);

  static uint64_t Counter() { return __rdtsc(); }
  static uint64_t Nanoseconds(uint64_t ticks);
  static uint64_t ProcessorTime();  // of this thread, ns

 private:
  bool IsLongAgo(uint64_t run, uint64_t counter) const;

  const uint64_t limit_, forgotten_after_;
  std::atomic<bool> suspects_{false};
  std::atomic<uint32_t> slow_{0};
  std::atomic<uint64_t> last_run_{0}, last_counter_{0};  // of the last slow one
};

}  // namespace longwire::policy
