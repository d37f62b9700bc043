// The keeper's half of its handshakes (server/keeper/hello.h).
#pragma once

#include <cstdint>

#include "server/keeper/protocol.h"

namespace longwire::keeper {

// Answers the warden's Hello, which is the first packet of the control socket if there is one, and
// returns the version to speak with it. 0: they have none in common, and *state has a code and a
// sentence for the warden.
uint32_t GreetWarden(int control, KeeperState* state);

}  // namespace longwire::keeper
