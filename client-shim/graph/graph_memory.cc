#include "client-shim/graph/graph_memory.h"

#include <algorithm>
#include <mutex>
#include <unordered_set>

#include "client-shim/memory/device_ranges.h"
#include "client-shim/support/never_destroyed.h"

namespace longwire::shim {
namespace {

struct Allocated {
  std::mutex mutex;
  std::unordered_set<uint64_t> addresses;
};

Allocated& TheAllocated() {
  static NeverDestroyed<Allocated> allocated;
  return *allocated;
}

}  // namespace

CUresult TakeGraphMemory(const calls::GraphMemory& memory, bool frees_at_launch) {
  if (memory.left.empty() && memory.freed.empty()) return CUDA_SUCCESS;
  Allocated& allocated = TheAllocated();
  std::lock_guard<std::mutex> lock(allocated.mutex);
  bool there = std::any_of(memory.left.begin(), memory.left.end(), [&](uint64_t address) {
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
  Allocated& allocated = TheAllocated();
  std::lock_guard<std::mutex> lock(allocated.mutex);
  return allocated.addresses.erase(address) != 0;
}

}  // namespace longwire::shim
