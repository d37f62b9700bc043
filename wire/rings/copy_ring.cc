#include "wire/rings/copy_ring.h"

#include <cstring>

#include "wire/rings/ring_control.h"

namespace longwire::wire {

bool CopyRing(RingMemory& from, RingMemory& to) {
  if (from.bytes() != to.bytes()) return false;
  const uint64_t written = from.control().written.load(std::memory_order_acquire);
  const uint64_t released = from.control().released.load(std::memory_order_acquire);
  if (released > written || written - released > from.bytes()) return false;
  // Only what is held: the rest may have been given back to the system.
  const size_t begin = released % from.bytes();
  std::memcpy(to.data() + begin, from.data() + begin, written - released);
  to.control().written.store(written, std::memory_order_release);
  to.control().released.store(released, std::memory_order_release);
  return true;
}

}  // namespace longwire::wire
