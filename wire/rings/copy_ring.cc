#include "wire/rings/copy_ring.h"

#include <cstring>

#include "wire/rings/ring_control.h"

namespace longwire::wire {

bool ReadRing(RingMemory& from, HeldBytes* held, std::span<const std::byte>* bytes) {
  const uint64_t written = from.control().written.load(std::memory_order_acquire);
  const uint64_t released = from.control().released.load(std::memory_order_acquire);
  if (released > written || written - released > from.bytes()) return false;
  *held = {from.bytes(), written, released};
  // Only what is held: the rest may have been given back to the system.
  *bytes = {from.data() + released % from.bytes(), written - released};
  return true;
}

bool FillRing(RingMemory& to, const HeldBytes& held, std::span<const std::byte> bytes) {
  if (to.bytes() != held.bytes || held.released > held.written ||
      held.written - held.released != bytes.size() || bytes.size() > to.bytes()) {
    return false;
  }
  if (!bytes.empty()) {
    std::memcpy(to.data() + held.released % to.bytes(), bytes.data(), bytes.size());
  }
  to.control().written.store(held.written, std::memory_order_release);
  to.control().released.store(held.released, std::memory_order_release);
  return true;
}

bool CopyRing(RingMemory& from, RingMemory& to) {
  HeldBytes held;
  std::span<const std::byte> bytes;
  return ReadRing(from, &held, &bytes) && FillRing(to, held, bytes);
}

}  // namespace longwire::wire
