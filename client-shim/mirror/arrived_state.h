// A state of the device's memory that has come while work runs: its changes become visible to the
// program at once.
#pragma once

#include "client-shim/mirror/mirror_table.h"

namespace longwire::shim {

// Where both sides have changed a byte to different values, the device's value stays. That is an
// error, at borders of work only in managed memory.
enum class Conflicts { kAll, kOfManaged };

// Applies all answers that have come, as ApplyArrived does, but as one state. False: pages of it
// cannot be held now; the answers stay.
bool ApplyArrivedAsState(Mirrors& mirrors, Conflicts conflicts) LONGWIRE_REQUIRES(mirrors.mutex);

}  // namespace longwire::shim
