// What is kept of a session when it ends.
#pragma once

#include <cstdint>

#include "server/daemon/sessions/session_record.h"
#include "server/daemon/usage/usage_record.h"

namespace longwire::daemon {

// A time of the steady clock by the system's clock, as that is now: microseconds since 1970.
uint64_t UtcOf(Clock::time_point time);
// How many calls the worker has executed; `*round_trips`: those for whose answer the client waited.
uint64_t CallsOf(gates::GatePage& page, uint64_t* round_trips);
// Of a session that ended while there was no daemon: how much it has used is not known.
UsageRecord RecordOfLost(uint64_t session, const SessionRecord& record);

}  // namespace longwire::daemon
