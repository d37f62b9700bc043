// The keeper's half of its handshakes (server/protocol/hello.h).
#pragma once

#include <cstdint>

#include "server/protocol/keeper.h"

namespace longwire::keeper {

// Answers the warden's Hello, the first packet of the control socket if it sends one. Returns the
// version to use; 0 if they have none in common, and *state then has a code and a sentence.
uint32_t GreetWarden(int control, KeeperState* state);

}  // namespace longwire::keeper
