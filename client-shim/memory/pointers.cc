#include "client-shim/memory/pointers.h"

#include <atomic>
#include <map>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "client-shim/code/module.h"
#include "client-shim/context/properties.h"
#include "client-shim/memory/device_memory.h"
#include "client-shim/mirror/host_memory.h"
#include "client-shim/mirror/managed_memory.h"
#include "client-shim/mirror/shared_blocks.h"
#include "client-shim/support/never_destroyed.h"

namespace longwire::shim {
namespace {

// The allocations that have the attribute: number by address.
struct Synchronous {
  base::Mutex mutex{base::ranks::kSyncMemops};
  std::map<uint64_t, uint64_t> ids LONGWIRE_GUARDED_BY(mutex);
  std::atomic<size_t> count{0};  // of ids: most programs have none
};

Synchronous& TheSynchronous() {
  static NeverDestroyed<Synchronous> synchronous;
  return *synchronous;
}

}  // namespace

bool FindDeviceRange(uint64_t address, DeviceRange* range) {
  ManagedRange managed;
  if (FindManaged(address, &managed)) {
    *range = {managed.address,
              managed.bytes,
              managed.id,
              managed.context,
              managed.context->number.load(),
              true};
    return true;
  }
  bool exposed = false;
  HostRange host;
  if (FindShared(address, &exposed) && exposed && FindHost(address, &host)) {
    Context* owner = FindContext(host.context);
    if (owner == nullptr) return false;
    *range = {host.address, host.bytes, host.id, owner, owner->number.load(), false};
    return true;
  }
  Allocation allocation;
  if (FindAllocation(address, &allocation)) {
    *range = {allocation.address, allocation.bytes,          allocation.id,
              allocation.context, allocation.context_number, false};
    return true;
  }
  uint64_t start = 0, bytes = 0;
  Context* context = nullptr;
  if (FindGlobal(address, &start, &bytes, &context)) {
    *range = {start, bytes, kGlobalIds + start, context, context->number.load(), false};
    return true;
  }
  return FindForeignRange(address, range);
}

bool IsGraphMemory(uint64_t address) {
  DeviceRange range;
  return DeviceOfAddress(address) < 0 && FindDeviceRange(address, &range) && range.foreign &&
         range.address == address;
}

CUresult SetSyncMemops(uint64_t address, bool on) {
  DeviceRange range;
  if (!FindDeviceRange(address, &range)) return CUDA_ERROR_INVALID_VALUE;
  Synchronous& synchronous = TheSynchronous();
  base::MutexLock lock(synchronous.mutex);
  std::erase_if(synchronous.ids, [](const auto& entry) {  // what was freed since
    DeviceRange found;
    return !FindDeviceRange(entry.first, &found) || found.id != entry.second;
  });
  if (on) {
    synchronous.ids[range.address] = range.id;
  } else {
    synchronous.ids.erase(range.address);
  }
  synchronous.count = synchronous.ids.size();
  return CUDA_SUCCESS;
}

bool HasSyncMemops(uint64_t address) {
  Synchronous& synchronous = TheSynchronous();
  DeviceRange range;
  if (synchronous.count.load() == 0 || !FindDeviceRange(address, &range)) return false;
  base::MutexLock lock(synchronous.mutex);
  auto found = synchronous.ids.find(range.address);
  return found != synchronous.ids.end() && found->second == range.id;
}

bool IsDeviceAddress(uint64_t address) {
  if (DeviceOfAddress(address) >= 0) {
    bool exposed = false;
    return !FindShared(address, &exposed) || exposed;
  }
  DeviceRange range;
  return FindDeviceRange(address, &range);
}

CUresult CheckDeviceRange(uint64_t address, uint64_t bytes) {
  while (true) {
    DeviceRange range;
    if (!FindDeviceRange(address, &range)) return CUDA_ERROR_INVALID_VALUE;
    uint64_t left = range.bytes - (address - range.address);
    if (bytes <= left) return CUDA_SUCCESS;
    if (!range.foreign) return CUDA_ERROR_INVALID_VALUE;
    address += left;
    bytes -= left;
  }
}

}  // namespace longwire::shim
