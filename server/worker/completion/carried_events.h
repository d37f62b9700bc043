// An event whose newest record a session that moves takes along.
#pragma once

#include <cstdint>
#include <tuple>

namespace longwire::worker {

struct CarriedEvent {
  uint64_t event = 0;
  uint64_t newest = 0;
  uint64_t newest_issued = 0;
  uint32_t context = 0;       // whose it is; 0: never recorded
  bool captured = false;      // recorded in a capture, which the journal has
  bool timed = false;         // when it was recorded is known
  uint64_t before_nanos = 0;  // before the move's moment (Events::Carry)
  auto Fields() {
    return std::tie(event, newest, newest_issued, context, captured, timed, before_nanos);
  }
};

// When the old worker marked its moment, in nanoseconds. The steady clock begins anew when the host
// boots, and the system's may be set.
struct CarriedMoment {
  uint64_t steady = 0;
  uint64_t system = 0;
  auto Fields() { return std::tie(steady, system); }
};
// How long ago that is: by the steady clock, if it is still the same one.
uint64_t PauseBetween(const CarriedMoment& before, const CarriedMoment& now);

}  // namespace longwire::worker
