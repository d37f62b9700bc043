// How much device memory each session has had for how long: the integral of its leased bytes over
// time, from the keepers' events. What was leased before an event could be seen (by a worker that
// waited for a session) or in events that were lost is found by comparing with the keepers' figures
// now and then, and shared out evenly over the time since the comparison before. Times are
// microseconds since 1970. No thread, clock or lock.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <utility>

#include "server/protocol/keeper.h"

namespace longwire::daemon {

class MemoryMeter {
 public:
  struct Reading {
    double byte_hours = 0;
    bool estimated = false;  // a part is not from events
  };
  using Leased = std::map<uint64_t, uint64_t>;  // bytes by session

  // Sessions that were not begun are not measured.
  void Begin(uint64_t session, uint64_t time);
  // Nothing before this time counts.
  void BeginAt(uint64_t session, uint64_t time);
  // Nothing after this time counts. Events from before it may still come.
  void Stop(uint64_t session, uint64_t time);
  // What was measured until it was stopped, or until now; the session is forgotten.
  Reading Take(uint64_t session, uint64_t now);
  bool empty() const { return sessions_.empty(); }

  void Apply(int32_t device, std::span<const keeper::MemoryEvent> events);
  // `leased`: what the sessions have of the device now, when all events up to now were applied.
  void Compare(int32_t device, const Leased& leased, uint64_t now);

 private:
  struct Seat {
    uint64_t leased = 0;
    uint64_t since = 0;     // up to when byte_time counts
    uint64_t compared = 0;  // when `leased` was last known to be right
    double byte_time = 0;   // bytes times microseconds
  };
  struct Meter {
    uint64_t begun = 0;
    uint64_t stopped = UINT64_MAX;
    bool estimated = false;
    std::map<int32_t, Seat> seats;  // by device
  };
  static Seat& SeatOf(Meter& session, int32_t device);
  static void Advance(const Meter& session, uint64_t time, Seat* seat);

  std::map<uint64_t, Meter> sessions_;
};

}  // namespace longwire::daemon
