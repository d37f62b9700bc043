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
  bool timed = false;         // when it was recorded is known
  uint64_t before_nanos = 0;  // before the move's moment (Events::Carry)
  auto Fields() { return std::tie(event, newest, newest_issued, context, timed, before_nanos); }
};

}  // namespace longwire::worker
