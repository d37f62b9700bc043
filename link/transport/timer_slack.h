// gRPC's timers may be late, so that the system wakes them together (docs/decisions/0036).
#pragma once

namespace longwire::transport {

// Starts gRPC, whose threads of timers then have slack. LONGWIRE_DISABLE=timer-slack: they have
// none.
void StartGrpcWithSlack();

}  // namespace longwire::transport
