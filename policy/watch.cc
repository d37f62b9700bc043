#include "policy/watch.h"

#include <time.h>

#include <chrono>

namespace longwire::policy {

namespace {

uint64_t Ticks(uint64_t nanoseconds) {
  return static_cast<uint64_t>(static_cast<double>(nanoseconds) * TicksPerNanosecond());
}

}  // namespace

double TicksPerNanosecond() {
  static const double ticks = [] {
    const auto begin = std::chrono::steady_clock::now();
    const uint64_t first = __rdtsc();
    auto now = begin;
    while (now - begin < std::chrono::microseconds(200)) now = std::chrono::steady_clock::now();
    return static_cast<double>(__rdtsc() - first) /
           static_cast<double>(std::chrono::nanoseconds(now - begin).count());
  }();
  return ticks;
}

Watch::Watch() : limit_(Ticks(kLongestRun)), forgotten_after_(Ticks(kForgottenAfter)) {}

void Watch::Suspect(uint64_t run, uint64_t counter) {
  last_run_ = run;
  last_counter_ = counter;
  slow_ = 0;
  suspects_ = true;
}

// Signed: the counters of two processors may be some ticks apart.
bool Watch::IsLongAgo(uint64_t run, uint64_t counter) const {
  return static_cast<int64_t>(counter - last_counter_) > static_cast<int64_t>(forgotten_after_) &&
         static_cast<int64_t>(run - last_run_) > static_cast<int64_t>(kForgottenAfterRuns);
}

bool Watch::IsTooMuch(uint64_t nanoseconds, uint64_t run, uint64_t counter) {
  const bool long_ago = IsLongAgo(run, counter);
  if (nanoseconds <= kLongestRun) {
    if (long_ago) suspects_ = false;
    return false;
  }
  if (long_ago) slow_ = 0;
  last_run_ = run;
  last_counter_ = counter;
  return ++slow_ >= kSlowRuns;
}

uint64_t Watch::Nanoseconds(uint64_t ticks) {
  return static_cast<uint64_t>(static_cast<double>(ticks) / TicksPerNanosecond());
}

uint64_t Watch::ProcessorTime() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec);
}

}  // namespace longwire::policy
