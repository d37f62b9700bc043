#include "client-shim/memory/device_ranges.h"

#include <map>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "client-shim/support/never_destroyed.h"

namespace longwire::shim {
namespace {

struct Foreign {
  base::Mutex mutex{base::ranks::kForeignRanges};
  std::map<uint64_t, DeviceRange> by_address LONGWIRE_GUARDED_BY(mutex);
  uint64_t next_id LONGWIRE_GUARDED_BY(mutex) = kGlobalIds;  // never used again
};

Foreign& TheForeign() {
  static NeverDestroyed<Foreign> foreign;
  return *foreign;
}

}  // namespace

bool FindForeignRange(uint64_t address, DeviceRange* range) {
  Foreign& foreign = TheForeign();
  base::MutexLock lock(foreign.mutex);
  auto after = foreign.by_address.upper_bound(address);
  if (after == foreign.by_address.begin()) return false;
  *range = std::prev(after)->second;
  return address - range->address < range->bytes;
}

void AddForeignRange(uint64_t address, uint64_t bytes, Context* context) {
  Foreign& foreign = TheForeign();
  base::MutexLock lock(foreign.mutex);
  foreign.by_address[address] = {address, bytes, foreign.next_id++, context, context->number.load(),
                                 false,   true};
}

void RemoveForeignRange(uint64_t address) {
  Foreign& foreign = TheForeign();
  base::MutexLock lock(foreign.mutex);
  foreign.by_address.erase(address);
}

}  // namespace longwire::shim
