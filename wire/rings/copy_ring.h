// A ring's bytes and positions in another ring, for a session whose worker is replaced.
#pragma once

#include "wire/rings/ring.h"

namespace longwire::wire {

// Nobody uses either ring meanwhile, and whoever uses `to` afterwards makes its producer and
// consumer anew. False if they differ in size.
bool CopyRing(RingMemory& from, RingMemory& to);

}  // namespace longwire::wire
