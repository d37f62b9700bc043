// When the device reached an event, on this host's clock. The driver tells how much time lies
// between two events; where that lies on the host's clock follows from the order of things: no call
// starts before it was issued, and none ends after its end was seen. Each call narrows that down,
// and so the clocks may drift.
#pragma once

#include <cstdint>
#include <functional>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "server/worker/support/driver.h"

namespace longwire::worker {

// Of one context: the driver compares no events of different ones.
class DeviceClock {
 public:
  // `anchor` was recorded into an arbitrary stream; `before`: the host's time before that.
  DeviceClock(const DriverTable& driver, CUevent anchor, uint64_t before)
      : driver_(driver), anchor_(anchor), earliest_(static_cast<int64_t>(before)) {}

  struct Interval {
    uint64_t started = 0;  // nanoseconds of the host's clock
    uint64_t ended = 0;
    uint64_t error = 0;
  };
  // Of events that the device has reached, of a call that was issued at that time. `now` is asked
  // once the driver has told when it was over: a device may note an event some time after the work
  // before it, and so after somebody has seen its end. False if the driver cannot tell.
  bool Locate(CUevent begin, CUevent end, uint64_t issued, const std::function<uint64_t()>& now,
              Interval* interval);

  // Long distances between events have few digits: `*event` takes the anchor's place if that is far
  // back, and the old anchor comes back in its place.
  void Renew(CUevent* event);

  // Its context is about to be destroyed, and all events with it: nothing is located any more.
  // Returns the anchor.
  CUevent End();

 private:
  bool Since(CUevent event, int64_t* nanoseconds) const LONGWIRE_REQUIRES(mutex_);

  const DriverTable& driver_;
  base::Mutex mutex_{base::ranks::kDeviceClock};
  bool ended_ LONGWIRE_GUARDED_BY(mutex_) = false;
  CUevent anchor_ LONGWIRE_GUARDED_BY(mutex_);
  // The host's time of the anchor lies between the two.
  int64_t earliest_ LONGWIRE_GUARDED_BY(mutex_);
  int64_t latest_ LONGWIRE_GUARDED_BY(mutex_) = INT64_MAX;
  // Since the anchor, of the event that was located last.
  int64_t newest_ LONGWIRE_GUARDED_BY(mutex_) = 0;
};

}  // namespace longwire::worker
