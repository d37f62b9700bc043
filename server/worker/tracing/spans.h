// What became of each call, for a client that traces (longwire trace -o): when it was read from the
// log, since when a gate held it back, when the driver was called, and when the device worked for
// it. The device says so itself, by two events around each call that gives it work; launches then
// go one by one. Off, each place that asks costs a branch.
//
// Spans wait for the client, which fetches them; a client that does not come loses the newest.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "longwire/calls.h"
#include "server/worker/support/objects.h"
#include "server/worker/tracing/device_clock.h"

namespace longwire::worker {

class Spans {
 public:
  static constexpr size_t kMaxWaiting = size_t{1} << 16;  // for the client: some 8 MiB
  static constexpr size_t kMaxOpen = size_t{1} << 16;     // read, not yet issued
  static constexpr size_t kMaxEvents = size_t{1} << 15;   // of the driver
  static constexpr uint32_t kReadLimit = 512;             // spans in one answer

  explicit Spans(const DriverTable& driver) : driver_(driver) {}

  bool on() const { return on_.load(std::memory_order_relaxed); }
  // Log thread.
  void Measure(bool on) LONGWIRE_EXCLUDES(mutex_);
  // Moves spans into the reply. Returns the functions in them that come for the first time.
  std::vector<uint64_t> Take(uint32_t most, calls::lwSpansRead::Reply* reply)
      LONGWIRE_EXCLUDES(mutex_);

  // Log thread, only while on. The stream's issue_mutex is held and its context is current.
  void Read(const QueuedCall& call) LONGWIRE_EXCLUDES(mutex_);
  void Held(const QueuedCall& call) LONGWIRE_EXCLUDES(mutex_);
  void Starts(Stream& stream, const QueuedCall& call) LONGWIRE_EXCLUDES(mutex_);
  void Issued(Stream& stream, const QueuedCall& call) LONGWIRE_EXCLUDES(mutex_);
  void Dropped(const QueuedCall& call) LONGWIRE_EXCLUDES(mutex_);

  // A place in a stream, for launch_samples.h. Also while off.
  struct Place {
    std::shared_ptr<DeviceClock> clock;  // null: the device cannot be asked
    CUevent event = nullptr;
    uint64_t issued = 0;
  };
  Place Mark(Stream& stream) LONGWIRE_EXCLUDES(mutex_);
  // Has `then` called, on the completion thread, with the time at which the device got there.
  void WhenReached(Stream& stream, const Place& place, std::function<void(uint64_t)> then);
  // The same of what lies between two places, with when the device was there.
  void WhenDone(Stream& stream, const Place& begin, const Place& end,
                std::function<void(const DeviceClock::Interval&)> then);
  void Unmark(const Stream& stream, const Place& place) LONGWIRE_EXCLUDES(mutex_);

  // A call outside streams has run on this thread since `begun`.
  void Ran(const QueuedCall& call, uint64_t begun) LONGWIRE_EXCLUDES(mutex_);

  // The context is being destroyed; nothing of it is unfinished.
  void Forget(const Context& context) LONGWIRE_EXCLUDES(mutex_);

  // The host's steady clock, nanoseconds.
  static uint64_t Now();

 private:
  struct Open {
    calls::CallSpan span;
    CUevent begin = nullptr;
  };
  struct Measured {
    calls::CallSpan span;
    std::shared_ptr<DeviceClock> clock;
    CUevent begin = nullptr;
    CUevent end = nullptr;
  };

  CUevent TakeEvent(uint32_t context) LONGWIRE_EXCLUDES(mutex_);
  void GiveBack(uint32_t context, CUevent event) LONGWIRE_REQUIRES(mutex_);
  std::shared_ptr<DeviceClock> ClockOf(const Stream& stream) LONGWIRE_EXCLUDES(mutex_);
  // False where the device cannot be asked: in captures, and behind errors.
  static bool CanMeasure(Stream& stream);
  void Finished(Measured& measured, bool good) LONGWIRE_EXCLUDES(mutex_);
  void Keep(const calls::CallSpan& span) LONGWIRE_REQUIRES(mutex_);

  const DriverTable& driver_;
  std::atomic<bool> on_{false};

  base::Mutex mutex_{base::ranks::kSpans};
  std::unordered_map<uint64_t, Open> open_ LONGWIRE_GUARDED_BY(mutex_);  // by position
  std::deque<calls::CallSpan> waiting_ LONGWIRE_GUARDED_BY(mutex_);
  uint64_t lost_ LONGWIRE_GUARDED_BY(mutex_) = 0;
  uint64_t measured_ LONGWIRE_GUARDED_BY(mutex_) = 0;  // issued and not finished
  std::unordered_set<uint64_t> named_ LONGWIRE_GUARDED_BY(mutex_);
  // By context.
  std::map<uint32_t, std::vector<CUevent>> events_ LONGWIRE_GUARDED_BY(mutex_);
  std::map<uint32_t, std::shared_ptr<DeviceClock>> clocks_ LONGWIRE_GUARDED_BY(mutex_);
  size_t driver_events_ LONGWIRE_GUARDED_BY(mutex_) = 0;
};

}  // namespace longwire::worker
