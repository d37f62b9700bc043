#include "client-shim/memory/virtual_memory.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <unordered_map>
#include <vector>

#include "base/lock_ranks.h"
#include "base/memory_sizes.h"
#include "base/mutex.h"
#include "base/try.h"
#include "client-shim/context/context.h"
#include "client-shim/context/current_context.h"
#include "client-shim/context/properties.h"
#include "client-shim/memory/device_memory.h"
#include "client-shim/memory/device_ranges.h"
#include "client-shim/memory/peers.h"
#include "client-shim/memory/sharing.h"
#include "client-shim/session/session.h"
#include "client-shim/support/holding.h"
#include "client-shim/support/never_destroyed.h"
#include "longwire/calls.h"
#include "longwire/shim_hand_written.h"

namespace longwire::shim {
namespace {

constexpr uint64_t kGranularity = base::kDeviceGranularityBytes;

struct Physical {
  uint64_t handle = 0;
  uint64_t bytes = 0;
  int device = 0;
  CUmemAllocationProp properties{};
  std::vector<uint64_t> chunks;
  uint32_t handles = 1;  // references that the program holds
  uint32_t maps = 0;
  uint32_t exports = 0;  // under way
};

struct Mapping {
  uint64_t bytes = 0;
  std::shared_ptr<Physical> physical;
  std::set<int> accessors;  // devices; its own from the start
  bool leaving = false;     // a thread waits for the worker to unmap it
};

struct Reservation {
  uint64_t bytes = 0;
  int device = 0;
};

// The counts of physical memory are guarded by the mutex, too. No thread waits for the worker while
// it holds it: look-ups and other ranges need it.
struct Mappings {
  base::Mutex mutex{base::ranks::kMappings};
  base::CondVar left;  // a mapping is no longer leaving
  std::map<uint64_t, Reservation> reserved LONGWIRE_GUARDED_BY(mutex);  // by address
  std::map<uint64_t, Mapping> mapped LONGWIRE_GUARDED_BY(mutex);        // by address
  std::unordered_map<uint64_t, std::shared_ptr<Physical>> physical LONGWIRE_GUARDED_BY(mutex);
  uint64_t next LONGWIRE_GUARDED_BY(mutex) = 1;
};

Mappings& TheMappings() {
  static NeverDestroyed<Mappings> mappings;
  return *mappings;
}

// Memory goes back when no handle, no mapping and no export uses it.
void DropIfUnused(Mappings& mappings, const std::shared_ptr<Physical>& physical)
    LONGWIRE_REQUIRES(mappings.mutex) {
  if (physical->handles != 0 || physical->maps != 0 || physical->exports != 0) return;
  mappings.physical.erase(physical->handle);
  MemoryOf(physical->device)->ReturnChunks(physical->chunks);
}

bool AnyLeaving(Mappings& mappings, uint64_t address, uint64_t bytes)
    LONGWIRE_REQUIRES(mappings.mutex) {
  auto at = Holding(mappings.mapped, address);
  if (at == mappings.mapped.end()) at = mappings.mapped.lower_bound(address);
  while (at != mappings.mapped.end() && (at->first <= address || at->first - address < bytes)) {
    if (at->second.leaving) return true;
    ++at;
  }
  return false;
}

// Waits until no mapping in the range is leaving; the lock is released meanwhile.
void AwaitLeaving(Mappings& mappings, base::MutexLock& lock, uint64_t address, uint64_t bytes)
    LONGWIRE_REQUIRES(mappings.mutex) {
  while (AnyLeaving(mappings, address, bytes)) mappings.left.Wait(lock);
}

// True if the range consists of whole adjacent mappings.
bool WholeMappings(const Mappings& mappings, uint64_t address, uint64_t bytes,
                   std::vector<uint64_t>* starts) LONGWIRE_REQUIRES(mappings.mutex) {
  if (bytes == 0 || bytes > base::kMaxMemoryBytes) return false;
  uint64_t at = address;
  for (auto found = mappings.mapped.find(address); at < address + bytes; ++found) {
    if (found == mappings.mapped.end() || found->first != at) return false;
    starts->push_back(at);
    at += found->second.bytes;
  }
  return at == address + bytes;
}

// True if the range is reserved and nothing is mapped in it: unmapping it does nothing.
bool NothingMapped(Mappings& mappings, uint64_t address, uint64_t bytes)
    LONGWIRE_REQUIRES(mappings.mutex) {
  auto reserved = Holding(mappings.reserved, address);
  if (bytes == 0 || reserved == mappings.reserved.end()) return false;
  if (bytes > reserved->second.bytes - (address - reserved->first)) return false;
  auto next = mappings.mapped.lower_bound(address);
  bool mapped = Holding(mappings.mapped, address) != mappings.mapped.end() ||
                (next != mappings.mapped.end() && next->first < address + bytes);
  return !mapped;
}

uint64_t AddPhysical(std::shared_ptr<Physical> physical) {
  Mappings& mappings = TheMappings();
  base::MutexLock lock(mappings.mutex);
  uint64_t handle = mappings.next++;
  physical->handle = handle;
  mappings.physical[handle] = std::move(physical);
  return handle;
}

// The devices whose memory is mapped there.
std::set<int> OwnersOf(const Mappings& mappings, const std::vector<uint64_t>& starts)
    LONGWIRE_REQUIRES(mappings.mutex) {
  std::set<int> owners;
  for (uint64_t start : starts) owners.insert(mappings.mapped.at(start).physical->device);
  return owners;
}

// INVALID_DEVICE if the device cannot reach one of the owners' memory at all. Waits for the worker.
CUresult CheckPeers(std::set<int> owners, int device) {
  owners.erase(device);
  for (int owner : owners) {
    int can = 0;
    LONGWIRE_TRY(CanAccessPeer(&can, device, owner));
    if (can == 0) return CUDA_ERROR_INVALID_DEVICE;
  }
  return CUDA_SUCCESS;
}

}  // namespace

uint64_t PhysicalGranularity() { return kGranularity; }

CUresult CheckProperties(const CUmemAllocationProp& properties) {
  if (properties.type != CU_MEM_ALLOCATION_TYPE_PINNED) return CUDA_ERROR_INVALID_VALUE;
  if (properties.location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_NOT_SUPPORTED;
  if (FindDevice(properties.location.id) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  bool known = properties.requestedHandleTypes == CU_MEM_HANDLE_TYPE_NONE ||
               properties.requestedHandleTypes == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  return known ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
}

namespace {

bool TakeAligned(DeviceMemory* memory, uint64_t bytes, uint64_t alignment, uint64_t hint,
                 uint64_t* address) {
  if (!memory->TakeAddresses(bytes, hint, address)) return false;
  if (*address % alignment == 0) return true;
  memory->GiveAddresses(*address, bytes);
  // Enough for an aligned range wherever it starts; the rest goes back.
  const uint64_t room = bytes + alignment - kGranularity;
  uint64_t start = 0;
  if (!memory->TakeAddresses(room, 0, &start)) return false;
  *address = (start + alignment - 1) / alignment * alignment;
  const uint64_t before = *address - start, behind = room - before - bytes;
  if (before != 0) memory->GiveAddresses(start, before);
  if (behind != 0) memory->GiveAddresses(*address + bytes, behind);
  return true;
}

}  // namespace

CUresult ReserveAddresses(uint64_t bytes, uint64_t alignment, uint64_t hint, uint64_t* address) {
  if (bytes % kGranularity != 0 || bytes > base::kMaxMemoryBytes) return CUDA_ERROR_INVALID_VALUE;
  if ((alignment & (alignment - 1)) != 0) return CUDA_ERROR_INVALID_VALUE;
  if (alignment > base::kMaxMemoryBytes) return CUDA_ERROR_OUT_OF_MEMORY;
  CUdevice device = 0;
  ContextDevice(nullptr, &device);
  int hinted = DeviceOfAddress(hint);
  if (hinted >= 0) device = hinted;
  alignment = std::max(alignment, kGranularity);
  if (!TakeAligned(MemoryOf(device), bytes, alignment, hint, address)) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  Mappings& mappings = TheMappings();
  base::MutexLock lock(mappings.mutex);
  mappings.reserved[*address] = {bytes, device};
  return CUDA_SUCCESS;
}

CUresult FreeAddresses(uint64_t address, uint64_t bytes) {
  Mappings& mappings = TheMappings();
  base::MutexLock lock(mappings.mutex);
  AwaitLeaving(mappings, lock, address, bytes);
  auto found = mappings.reserved.find(address);
  if (found == mappings.reserved.end() || found->second.bytes != bytes) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  auto mapped = mappings.mapped.lower_bound(address);
  if (mapped != mappings.mapped.end() && mapped->first < address + bytes) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const int device = found->second.device;
  mappings.reserved.erase(found);
  lock.Unlock();  // memory that is being leased keeps others from the addresses
  MemoryOf(device)->GiveAddresses(address, bytes);
  return CUDA_SUCCESS;
}

CUresult CreatePhysical(uint64_t bytes, const CUmemAllocationProp& properties, uint64_t* handle) {
  LONGWIRE_TRY(CheckProperties(properties));
  if (bytes == 0 || bytes % kGranularity != 0 || bytes > base::kMaxMemoryBytes)
    return CUDA_ERROR_INVALID_VALUE;
  auto physical = std::make_shared<Physical>();
  physical->bytes = bytes;
  physical->device = properties.location.id;
  physical->properties = properties;
  LONGWIRE_TRY(MemoryOf(physical->device)->LeaseChunks(bytes, &physical->chunks));
  *handle = AddPhysical(std::move(physical));
  return CUDA_SUCCESS;
}

CUresult ExportPhysical(uint64_t handle, int* descriptor) {
  Mappings& mappings = TheMappings();
  std::shared_ptr<Physical> physical;
  {
    base::MutexLock lock(mappings.mutex);
    auto found = mappings.physical.find(handle);
    if (found == mappings.physical.end() || found->second->handles == 0 ||
        found->second->properties.requestedHandleTypes == CU_MEM_HANDLE_TYPE_NONE) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    physical = found->second;
    physical->exports += 1;  // keeps the chunks until the server has answered
  }
  SharedToken token{};
  CUresult result = ShareChunks(*FindDevice(physical->device)->session, physical->chunks, &token);
  {
    base::MutexLock lock(mappings.mutex);
    physical->exports -= 1;
    DropIfUnused(mappings, physical);
  }
  return result == CUDA_SUCCESS ? TokenToDescriptor(TokenKind::kMemory, token, descriptor) : result;
}

CUresult ImportPhysical(int descriptor, uint64_t* handle) {
  SharedToken token{};
  if (!TokenFromDescriptor(TokenKind::kMemory, descriptor, &token)) return CUDA_ERROR_INVALID_VALUE;
  BorrowedChunks borrowed;
  LONGWIRE_TRY(BorrowChunks(token, &borrowed));
  auto physical = std::make_shared<Physical>();
  physical->bytes = borrowed.bytes;
  physical->device = borrowed.device;
  physical->chunks = std::move(borrowed.chunks);
  physical->properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  physical->properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, borrowed.device};
  physical->properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  *handle = AddPhysical(std::move(physical));
  return CUDA_SUCCESS;
}

CUresult ReleasePhysical(uint64_t handle) {
  Mappings& mappings = TheMappings();
  base::MutexLock lock(mappings.mutex);
  auto found = mappings.physical.find(handle);
  if (found == mappings.physical.end() || found->second->handles == 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  std::shared_ptr<Physical> physical = found->second;
  physical->handles -= 1;
  DropIfUnused(mappings, physical);
  return CUDA_SUCCESS;
}

namespace {

// Whether the memory of the handle can be mapped at the address.
CUresult CheckMapping(Mappings& mappings, base::MutexLock& lock, uint64_t address, uint64_t bytes,
                      uint64_t handle, std::shared_ptr<Physical>* physical)
    LONGWIRE_REQUIRES(mappings.mutex) {
  AwaitLeaving(mappings, lock, address, bytes);
  auto found = mappings.physical.find(handle);
  if (found == mappings.physical.end()) return CUDA_ERROR_INVALID_VALUE;
  *physical = found->second;
  if (bytes > (*physical)->bytes) return CUDA_ERROR_NOT_SUPPORTED;  // as the driver says
  if (bytes < (*physical)->bytes) return CUDA_ERROR_INVALID_VALUE;
  auto reserved = Holding(mappings.reserved, address);
  if (reserved == mappings.reserved.end() || address % kGranularity != 0 ||
      bytes > reserved->second.bytes - (address - reserved->first)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  auto next = mappings.mapped.lower_bound(address);
  bool taken = Holding(mappings.mapped, address) != mappings.mapped.end() ||
               (next != mappings.mapped.end() && next->first < address + bytes);
  return taken ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

// The worker has unmapped it.
void EraseMapping(Mappings& mappings, uint64_t start) LONGWIRE_REQUIRES(mappings.mutex) {
  auto found = mappings.mapped.find(start);
  RemoveForeignRange(start);
  std::shared_ptr<Physical> physical = found->second.physical;
  mappings.mapped.erase(found);
  physical->maps -= 1;
  DropIfUnused(mappings, physical);
}

}  // namespace

CUresult MapPhysical(uint64_t address, uint64_t bytes, uint64_t handle) {
  Mappings& mappings = TheMappings();
  base::MutexLock lock(mappings.mutex);
  std::shared_ptr<Physical> physical;
  LONGWIRE_TRY(CheckMapping(mappings, lock, address, bytes, handle, &physical));
  lock.Unlock();
  int window = DeviceOfAddress(address);
  if (window >= 0 && FindDevice(window)->session != FindDevice(physical->device)->session) {
    return RefuseIfSeveral("memory of one server at an address reserved for another");
  }
  Context* context = PrimaryContext(physical->device);
  LONGWIRE_TRY(ActivatePrimary(context));
  lock.Lock();
  LONGWIRE_TRY(CheckMapping(mappings, lock, address, bytes, handle, &physical));
  calls::lwMap map;
  map.device = FindDevice(physical->device)->server_ordinal;
  map.address = address;
  map.chunk = physical->chunks;
  context->session->Submit({}, map, map.EncodedBytes());
  physical->maps += 1;
  mappings.mapped[address] = {bytes, physical, {physical->device}};
  AddForeignRange(address, bytes, context);
  return CUDA_SUCCESS;
}

CUresult UnmapAddresses(uint64_t address, uint64_t bytes) {
  Mappings& mappings = TheMappings();
  base::MutexLock lock(mappings.mutex);
  AwaitLeaving(mappings, lock, address, bytes);
  if (NothingMapped(mappings, address, bytes)) return CUDA_SUCCESS;
  std::vector<uint64_t> starts;
  if (!WholeMappings(mappings, address, bytes, &starts)) return CUDA_ERROR_INVALID_VALUE;
  std::vector<calls::lwUnmap> unmaps(starts.size());
  std::vector<ClientSession*> sessions(starts.size());
  for (size_t i = 0; i < starts.size(); ++i) {
    Mapping& mapping = mappings.mapped.at(starts[i]);
    mapping.leaving = true;
    sessions[i] = FindDevice(mapping.physical->device)->session;
    unmaps[i].address = starts[i];
    unmaps[i].bytes = mapping.bytes;
  }
  CUresult result = CUDA_SUCCESS;
  for (size_t i = 0; i < starts.size(); ++i) {
    if (result == CUDA_SUCCESS) {
      lock.Unlock();
      // The addresses may be mapped anew right away: the worker must have unmapped them by then.
      result = sessions[i]->CallAndWait({0, nullptr, wire::kWantsReply}, unmaps[i]).code;
      lock.Lock();
    }
    if (result == CUDA_SUCCESS) {
      EraseMapping(mappings, starts[i]);
    } else {
      mappings.mapped.at(starts[i]).leaving = false;
    }
  }
  lock.Unlock();
  mappings.left.NotifyAll();
  return result;
}

CUresult SetAccess(uint64_t address, uint64_t bytes, const CUmemAccessDesc* wanted, size_t count) {
  Mappings& mappings = TheMappings();
  base::MutexLock lock(mappings.mutex);
  AwaitLeaving(mappings, lock, address, bytes);
  std::vector<uint64_t> starts;
  if (!WholeMappings(mappings, address, bytes, &starts)) return CUDA_ERROR_INVALID_VALUE;
  const std::set<int> owners = OwnersOf(mappings, starts);
  lock.Unlock();
  for (size_t i = 0; i < count; ++i) {
    if (wanted[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_NOT_SUPPORTED;
    if (wanted[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READ) return CUDA_ERROR_NOT_SUPPORTED;
    if (FindDevice(wanted[i].location.id) == nullptr) return CUDA_ERROR_INVALID_VALUE;
    LONGWIRE_TRY(CheckPeers(owners, wanted[i].location.id));
  }
  lock.Lock();
  AwaitLeaving(mappings, lock, address, bytes);
  starts.clear();
  bool changed =
      !WholeMappings(mappings, address, bytes, &starts) || OwnersOf(mappings, starts) != owners;
  if (changed) return CUDA_ERROR_INVALID_VALUE;  // by another thread, meanwhile
  for (size_t i = 0; i < count; ++i) {
    int device = wanted[i].location.id;
    bool access = wanted[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    for (uint64_t start : starts) {
      Mapping& mapping = mappings.mapped[start];
      bool changed =
          access ? mapping.accessors.insert(device).second : mapping.accessors.erase(device) != 0;
      const Device* found = FindDevice(device);
      if (changed)
        SubmitAccess(*found->session, start, mapping.bytes, found->server_ordinal, access);
    }
  }
  return CUDA_SUCCESS;
}

CUresult GetAccess(uint64_t address, const CUmemLocation& location, unsigned long long* flags) {
  if (location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_NOT_SUPPORTED;
  bool access = false;
  if (!FindMappingAccess(address, location.id, &access)) return CUDA_ERROR_INVALID_VALUE;
  *flags = access ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_NONE;
  return CUDA_SUCCESS;
}

bool FindMappingAccess(uint64_t address, int device, bool* access) {
  Mappings& mappings = TheMappings();
  base::MutexLock lock(mappings.mutex);
  auto found = Holding(mappings.mapped, address);
  if (found == mappings.mapped.end()) return false;
  *access = found->second.accessors.count(device) != 0;
  return true;
}

CUresult PhysicalBytes(uint64_t handle, uint64_t* bytes) {
  Mappings& mappings = TheMappings();
  base::MutexLock lock(mappings.mutex);
  auto found = mappings.physical.find(handle);
  if (found == mappings.physical.end()) return CUDA_ERROR_INVALID_VALUE;
  *bytes = found->second->bytes;
  return CUDA_SUCCESS;
}

CUresult PhysicalProperties(uint64_t handle, CUmemAllocationProp* properties) {
  Mappings& mappings = TheMappings();
  base::MutexLock lock(mappings.mutex);
  auto found = mappings.physical.find(handle);
  if (found == mappings.physical.end()) return CUDA_ERROR_INVALID_VALUE;
  *properties = found->second->properties;
  return CUDA_SUCCESS;
}

CUresult RetainPhysicalAt(uint64_t address, uint64_t* handle) {
  Mappings& mappings = TheMappings();
  base::MutexLock lock(mappings.mutex);
  auto found = Holding(mappings.mapped, address);
  if (found == mappings.mapped.end()) return CUDA_ERROR_INVALID_VALUE;
  found->second.physical->handles += 1;
  *handle = found->second.physical->handle;
  return CUDA_SUCCESS;
}

}  // namespace longwire::shim
