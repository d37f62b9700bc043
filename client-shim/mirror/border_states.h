// Borders of work at which somebody looks on: another thread of the program, or a kernel that runs.
// What is exchanged there must become visible at once, or who sees a flag finds what was there
// before the message (docs/host-memory.md#borders-beside-those-who-look-on).
#pragma once

#include "client-shim/mirror/mirror_table.h"

namespace longwire::shim {

// Whether a pull behind awaited work would be made beside kernels that may write on: it has no
// state then.
bool RunsBeside(const Mirrors& mirrors, const Stream* awaited) LONGWIRE_REQUIRES(mirrors.mutex);

// Applies what has come at a border: as one state, where the program has threads that may look on.
void ApplyAtBorder(Mirrors& mirrors) LONGWIRE_REQUIRES(mirrors.mutex);

// Sends what the program has changed as a word or a state, if a kernel may look on. False: nobody
// does, or it cannot be done; then it is sent in any order.
bool PushAsStates(Mirrors& mirrors) LONGWIRE_REQUIRES(mirrors.mutex);

// Asks for what the device has changed as a state, if kernels run that may write on. False: none
// do, or there was no state. The lock is released meanwhile.
bool PullAsState(Mirrors& mirrors) LONGWIRE_REQUIRES(mirrors.mutex);

}  // namespace longwire::shim
