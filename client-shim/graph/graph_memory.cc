#include "client-shim/graph/graph_memory.h"

#include <algorithm>
#include <unordered_set>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "client-shim/memory/device_ranges.h"
#include "client-shim/support/never_destroyed.h"

namespace longwire::shim {
namespace {

struct GraphAllocations {
  base::Mutex mutex{base::ranks::kGraphAllocations};
  std::unordered_set<uint64_t> addresses LONGWIRE_GUARDED_BY(mutex);
};

GraphAllocations& TheGraphAllocations() {
  static NeverDestroyed<GraphAllocations> allocated;
  return *allocated;
}

}  // namespace

CUresult TakeGraphMemory(const calls::GraphMemory& memory, bool frees_at_launch) {
  if (memory.left.empty() && memory.freed.empty()) return CUDA_SUCCESS;
  GraphAllocations& allocated = TheGraphAllocations();
  base::MutexLock lock(allocated.mutex);
  bool there = std::any_of(memory.left.begin(), memory.left.end(), [&](uint64_t address) {
    allocated.mutex.AssertHeld();
    return allocated.addresses.count(address) != 0;
  });
  if (there && !frees_at_launch) return CUDA_ERROR_INVALID_VALUE;
  allocated.addresses.insert(memory.left.begin(), memory.left.end());
  for (uint64_t address : memory.freed) allocated.addresses.erase(address);
  return CUDA_SUCCESS;
}

void AddGraphMemory(uint64_t address, uint64_t bytes, Context* context) {
  FreeGraphMemory(address);
  AddForeignRange(address, bytes, context);
}

bool FreeGraphMemory(uint64_t address) {
  GraphAllocations& allocated = TheGraphAllocations();
  base::MutexLock lock(allocated.mutex);
  return allocated.addresses.erase(address) != 0;
}

}  // namespace longwire::shim
