#include "server/worker/tracing/device_clock.h"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

namespace longwire::worker {
namespace {

// An event counts as reached when the work before it is; the record itself is a moment later, on a
// busy processor that runs a software device some milliseconds.
constexpr std::chrono::milliseconds kPatience{100};
// A float has 24 bits: a second in steps of 0.06 us.
constexpr int64_t kFarBack = 1'000'000'000;
// How much clocks drift apart at most, of the time that passes: 1 in this.
constexpr int64_t kDrift = 20'000;

}  // namespace

bool DeviceClock::Since(CUevent event, int64_t* nanoseconds) const {
  auto begun = std::chrono::steady_clock::now();
  while (true) {
    bool late = std::chrono::steady_clock::now() - begun > kPatience;
    float milliseconds = 0;
    CUresult result = driver_.cuEventElapsedTime_v2(&milliseconds, anchor_, event);
    if (result == CUDA_SUCCESS) *nanoseconds = std::llround(double{milliseconds} * 1e6);
    if (result != CUDA_ERROR_NOT_READY || late) return result == CUDA_SUCCESS;
    sched_yield();
  }
}

bool DeviceClock::Locate(CUevent begin, CUevent end, uint64_t issued,
                         const std::function<uint64_t()>& now, Interval* interval) {
  base::MutexLock lock(mutex_);
  int64_t started = 0, ended = 0;
  if (ended_) return false;
  if (!Since(begin, &started) || !Since(end, &ended)) return false;
  const uint64_t seen = now();
  // What earlier calls said of the anchor's time holds less the longer ago it was.
  const int64_t passed = std::max<int64_t>(ended - newest_, 0);
  newest_ = std::max(newest_, ended);
  if (latest_ != INT64_MAX) latest_ += passed / kDrift;
  earliest_ = std::max(earliest_, static_cast<int64_t>(issued) - started);
  latest_ = std::min(latest_, static_cast<int64_t>(seen) - ended);
  // The device's clock runs faster than this host's.
  if (earliest_ > latest_) earliest_ = latest_;
  interval->started = static_cast<uint64_t>(std::max(earliest_ + started, int64_t(issued)));
  interval->ended = static_cast<uint64_t>(std::max(earliest_ + ended, earliest_ + started));
  interval->ended = std::max(interval->ended, interval->started);
  interval->error = static_cast<uint64_t>(latest_ - earliest_);
  return true;
}

CUevent DeviceClock::End() {
  base::MutexLock lock(mutex_);
  ended_ = true;
  return anchor_;
}

void DeviceClock::Renew(CUevent* event) {
  base::MutexLock lock(mutex_);
  int64_t passed = 0;
  if (ended_ || newest_ < kFarBack || !Since(*event, &passed)) return;
  std::swap(anchor_, *event);
  earliest_ += passed;
  if (latest_ != INT64_MAX) latest_ += passed;
  newest_ = 0;
}

}  // namespace longwire::worker
