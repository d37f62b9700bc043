// Where memory is, for rules that check addresses before they are used.
#include <algorithm>

#include "server/worker/memory/memory.h"

namespace longwire::worker {

Memory::Range Memory::Nearest(uint64_t address) const {
  Range nearest;
  uint64_t distance = UINT64_MAX;
  auto next = mappings_.upper_bound(address);
  if (next != mappings_.end()) {
    nearest = {next->first, next->second.bytes};
    distance = next->first - address;
  }
  if (next == mappings_.begin()) return nearest;
  const auto& [start, before] = *std::prev(next);
  const uint64_t end = start + before.bytes;
  if (end > address || address - end < distance) nearest = {start, before.bytes};
  return nearest;
}

// The end of memory is one, too: iterators point there.
bool Memory::MayPointAt(uint64_t address, Range* nearest) {
  if (!InWindow(address, 0)) return true;
  base::MutexLock lock(mutex_);
  auto next = mappings_.upper_bound(address);
  if (next != mappings_.begin()) {
    const auto& [start, before] = *std::prev(next);
    if (address - start <= before.bytes) return true;
  }
  *nearest = Nearest(address);
  return false;
}

bool Memory::MayAccess(uint64_t address, uint64_t bytes, Range* nearest) {
  if (bytes == 0 || !InWindow(address, 0)) return true;
  base::MutexLock lock(mutex_);
  *nearest = Nearest(address);
  if (bytes > UINT64_MAX - address) return false;
  const uint64_t end = address + bytes;
  for (uint64_t at = address; at < end;) {
    auto next = mappings_.upper_bound(at);
    if (next == mappings_.begin()) return false;
    const auto& [start, mapping] = *std::prev(next);
    if (at - start >= mapping.bytes) return false;
    at = start + mapping.bytes;
  }
  return true;
}

}  // namespace longwire::worker
