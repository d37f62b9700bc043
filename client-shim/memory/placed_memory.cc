#include "client-shim/memory/placed_memory.h"

#include <algorithm>
#include <iterator>
#include <map>

#include "base/lock_ranks.h"
#include "base/memory_sizes.h"
#include "base/mutex.h"
#include "client-shim/session/session.h"
#include "client-shim/support/never_destroyed.h"

namespace longwire::shim {
namespace {

using Ranges = std::map<uint64_t, uint64_t>;  // address, bytes

struct PlacedMemory {
  base::Mutex mutex{base::ranks::kPlacedMemory};
  Ranges placed LONGWIRE_GUARDED_BY(mutex);
  Ranges pinned LONGWIRE_GUARDED_BY(mutex);
};

PlacedMemory& ThePlaced() {
  static NeverDestroyed<PlacedMemory> placed;
  return *placed;
}

// Those that overlap have any length: of ranges that begin before, the last one need not be the one
// that reaches in. There are few.
bool AnyIn(const Ranges& ranges, uint64_t address, uint64_t bytes) {
  return std::any_of(ranges.begin(), ranges.lower_bound(address + bytes),
                     [&](const auto& range) { return range.first + range.second > address; });
}

bool InWindows(uint64_t address, uint64_t bytes) {
  const auto overlaps = [&](const wire::DeviceDescription& device) {
    const wire::Window& window = device.window;
    return address < window.base + window.bytes && window.base < address + bytes;
  };
  return std::ranges::any_of(Sessions(), [&](const ClientSession* session) {
    return std::ranges::any_of(session->opened().devices, overlaps);
  });
}

}  // namespace

bool NotePlaced(uint64_t address, uint64_t bytes) {
  bytes = std::max<uint64_t>(bytes, 1);
  if (address < base::kPageBytes || bytes > base::kMaxMemoryBytes || address > UINT64_MAX - bytes ||
      InWindows(address, bytes)) {
    return false;
  }
  PlacedMemory& placed = ThePlaced();
  base::MutexLock lock(placed.mutex);
  if (AnyIn(placed.pinned, address, bytes)) return false;
  uint64_t& known = placed.placed[address];
  known = std::max(known, bytes);
  return true;
}

void ForgetPlaced(uint64_t address) {
  PlacedMemory& placed = ThePlaced();
  base::MutexLock lock(placed.mutex);
  placed.placed.erase(address);
}

bool NotePinned(uint64_t address, uint64_t bytes) {
  PlacedMemory& placed = ThePlaced();
  base::MutexLock lock(placed.mutex);
  if (AnyIn(placed.placed, address, bytes)) return false;
  placed.pinned[address] = bytes;
  return true;
}

void ForgetPinned(uint64_t address) {
  PlacedMemory& placed = ThePlaced();
  base::MutexLock lock(placed.mutex);
  placed.pinned.erase(address);
}

}  // namespace longwire::shim
