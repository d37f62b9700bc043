// A ring's bytes and positions in another ring, for a session whose worker is replaced.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "wire/rings/ring.h"

namespace longwire::wire {

// Nobody uses either ring meanwhile, and whoever uses `to` afterwards makes its producer and
// consumer anew. False if they differ in size.
bool CopyRing(RingMemory& from, RingMemory& to);

// The same by way of something else: what a ring holds, and a ring that holds that.
struct HeldBytes {
  uint64_t bytes = 0;  // of the ring
  uint64_t written = 0;
  uint64_t released = 0;
};
// False if the positions are no ring's.
bool ReadRing(RingMemory& from, HeldBytes* held, std::span<const std::byte>* bytes);
bool FillRing(RingMemory& to, const HeldBytes& held, std::span<const std::byte> bytes);

}  // namespace longwire::wire
