// A state of the device's memory that has come while work runs: its changes become visible to the
// program at once.
#pragma once

#include "client-shim/mirror/mirror_table.h"

namespace longwire::shim {

// Applies all answers that have come, as ApplyArrived does, but as one state. False: pages of it
// cannot be held now; the answers stay. Where both sides have changed a byte to different values,
// that is an error, and the device's value stays.
bool ApplyArrivedAsState(Mirrors& mirrors) LONGWIRE_REQUIRES(mirrors.mutex);

}  // namespace longwire::shim
