#include "softgpu/driver/memory/address_space.h"

#include <sys/mman.h>

#include <algorithm>

#include "softgpu/engine/memory/arena.h"

namespace softgpu {
namespace {

constexpr size_t kSmallAllocation = size_t{1} << 20;  // bytes; from here on whole chunks are used
constexpr uint64_t kMinAlignment = 512;               // bytes, as the driver's allocations

size_t RoundUp(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }
void* Pointer(uint64_t address) { return reinterpret_cast<void*>(address); }

}  // namespace

AddressSpace& AddressSpace::Get() {
  static auto* space = new AddressSpace;
  return *space;
}

AddressSpace::AddressSpace() : small_heaps_(kMaxDevices) {
  for (int device = 0; device < kMaxDevices; ++device) {
    accessors_.push_back(OnlyDevice(device));
  }
  ranges_.Give(Arena::Get().base(), Arena::Get().bytes());
}

uint64_t AddressSpace::Reserve(size_t bytes, uint64_t alignment, uint64_t hint) {
  base::MutexLock lock(mutex_);
  uint64_t address = 0;
  if (hint != 0 && hint % alignment == 0 && ranges_.TakeAt(hint, bytes)) {
    address = hint;
  } else {
    address = ranges_.TakeHighest(bytes, alignment);
  }
  if (address != 0) reservations_[address] = bytes;
  return address;
}

CUresult AddressSpace::Unreserve(uint64_t address, size_t bytes) {
  base::MutexLock lock(mutex_);
  auto reservation = reservations_.find(address);
  if (reservation == reservations_.end() || reservation->second != bytes) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  auto mapping = mappings_.lower_bound(address);
  if (mapping != mappings_.end() && mapping->first < address + bytes) {
    return CUDA_ERROR_INVALID_VALUE;  // still mapped
  }
  // Detach may have left the range readable for work that was running.
  static_cast<void>(mmap(Pointer(address), bytes, PROT_NONE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0));
  reservations_.erase(reservation);
  ranges_.Give(address, bytes);
  return CUDA_SUCCESS;
}

CUresult AddressSpace::Map(uint64_t address, size_t bytes, std::shared_ptr<Chunk> chunk) {
  base::MutexLock lock(mutex_);
  // A chunk is mapped whole, as on the devices that were measured.
  if (bytes != chunk->bytes || address % kChunkGranularity != 0 || !InReservation(address, bytes)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  auto next = mappings_.lower_bound(address);
  if (next != mappings_.end() && next->first < address + bytes) return CUDA_ERROR_INVALID_VALUE;
  if (next != mappings_.begin()) {
    auto previous = std::prev(next);
    if (previous->first + previous->second.bytes > address) return CUDA_ERROR_INVALID_VALUE;
  }
  return Attach(address, bytes, {bytes, std::move(chunk)}) ? CUDA_SUCCESS
                                                           : CUDA_ERROR_OUT_OF_MEMORY;
}

bool AddressSpace::InReservation(uint64_t address, size_t bytes) {
  auto reservation = reservations_.upper_bound(address);
  if (reservation == reservations_.begin()) return false;
  --reservation;
  uint64_t offset = address - reservation->first;
  return offset < reservation->second && bytes <= reservation->second - offset;
}

bool AddressSpace::Attach(uint64_t address, size_t bytes, Mapping mapping) {
  int protection = mapping.access != 0 ? PROT_READ | PROT_WRITE : PROT_NONE;
  int flags = MAP_SHARED | MAP_FIXED | (mapping.chunk ? 0 : MAP_ANONYMOUS | MAP_NORESERVE);
  int descriptor = mapping.chunk ? mapping.chunk->fd : -1;
  void* at = mmap(Pointer(address), bytes, protection, flags, descriptor, 0);
  if (at == MAP_FAILED) return false;
  // Where the system has large pages for shared memory, a chunk costs a fault per 2 MiB instead of
  // 512; some virtual machines take 14 us for each.
  if (mapping.chunk) madvise(at, bytes, MADV_HUGEPAGE);
  if (mapping.access != 0) Arena::Get().Mark(address, bytes, mapping.access);
  mappings_[address] = std::move(mapping);
  return true;
}

bool AddressSpace::AttachPlain(uint64_t address, std::shared_ptr<Chunk> chunk) {
  size_t bytes = chunk->bytes;
  DeviceSet access = accessors_[chunk->device];
  return Attach(address, bytes, {bytes, std::move(chunk), access, true});
}

// Work that runs now may have checked an address of this range a moment ago: the range then stays
// readable and writable (anonymous, its bytes lost) until it is mapped or freed again, so that a
// program's mistake ends in a fault of its stream, not in a signal.
void AddressSpace::Detach(Mappings::iterator mapping) {
  bool accessible = mapping->second.access != 0;
  if (accessible) Arena::Get().Mark(mapping->first, mapping->second.bytes, 0);
  bool in_use = accessible && running_work.load() > 0;
  static_cast<void>(mmap(Pointer(mapping->first), mapping->second.bytes,
                         in_use ? PROT_READ | PROT_WRITE : PROT_NONE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0));
  mappings_.erase(mapping);
}

bool AddressSpace::CoversWholeMappings(uint64_t address, size_t bytes) {
  uint64_t at = address;
  for (auto m = mappings_.find(address); at < address + bytes; ++m) {
    if (m == mappings_.end() || m->first != at) return false;
    at += m->second.bytes;
  }
  return at == address + bytes;
}

CUresult AddressSpace::Unmap(uint64_t address, size_t bytes) {
  base::MutexLock lock(mutex_);
  if (bytes == 0 || !CoversWholeMappings(address, bytes)) return CUDA_ERROR_INVALID_VALUE;
  if (!InReservation(address, bytes)) return CUDA_ERROR_INVALID_VALUE;
  for (auto m = mappings_.find(address); m != mappings_.end() && m->first < address + bytes;) {
    Detach(m++);
  }
  return CUDA_SUCCESS;
}

void AddressSpace::ChangeAccess(uint64_t address, Mapping& mapping, DeviceSet access) {
  if (mapping.access == access) return;
  if (access == 0) Arena::Get().Mark(address, mapping.bytes, 0);
  mprotect(Pointer(address), mapping.bytes, access != 0 ? PROT_READ | PROT_WRITE : PROT_NONE);
  if (access != 0) Arena::Get().Mark(address, mapping.bytes, access);
  mapping.access = access;
}

CUresult AddressSpace::SetAccess(uint64_t address, size_t bytes, DeviceSet added,
                                 DeviceSet removed) {
  base::MutexLock lock(mutex_);
  if (bytes == 0 || !CoversWholeMappings(address, bytes)) return CUDA_ERROR_INVALID_VALUE;
  for (auto m = mappings_.find(address); m != mappings_.end() && m->first < address + bytes; ++m) {
    ChangeAccess(m->first, m->second, (m->second.access & ~removed) | added);
  }
  return CUDA_SUCCESS;
}

void AddressSpace::SetPeerAccess(int owner, int accessor, bool enabled) {
  base::MutexLock lock(mutex_);
  DeviceSet peer = OnlyDevice(accessor);
  accessors_[owner] = enabled ? accessors_[owner] | peer : accessors_[owner] & ~peer;
  for (auto& [address, mapping] : mappings_) {
    if (!mapping.plain || mapping.chunk->device != owner) continue;
    ChangeAccess(address, mapping, accessors_[owner]);
  }
}

const AddressSpace::Mapping* AddressSpace::FindMapping(uint64_t address) {
  auto mapping = mappings_.upper_bound(address);
  if (mapping == mappings_.begin()) return nullptr;
  --mapping;
  return address - mapping->first < mapping->second.bytes ? &mapping->second : nullptr;
}

std::shared_ptr<Chunk> AddressSpace::FindChunk(uint64_t address) {
  base::MutexLock lock(mutex_);
  const Mapping* mapping = FindMapping(address);
  return mapping != nullptr ? mapping->chunk : nullptr;
}

std::optional<DeviceSet> AddressSpace::AccessOf(uint64_t address) {
  base::MutexLock lock(mutex_);
  const Mapping* mapping = FindMapping(address);
  return mapping != nullptr ? std::optional(mapping->access) : std::nullopt;
}

bool AddressSpace::IsPlain(uint64_t address) {
  base::MutexLock lock(mutex_);
  const Mapping* mapping = FindMapping(address);
  return mapping != nullptr && mapping->plain;
}

bool AddressSpace::GrowSmallHeap(int device) {
  auto chunk = PhysicalMemory::Get().Create(device, kChunkGranularity);
  if (!chunk) return false;
  uint64_t address = ranges_.TakeHighest(kChunkGranularity, kChunkGranularity);
  if (address == 0 || !AttachPlain(address, std::move(chunk))) return false;
  small_heaps_[device].Give(address, kChunkGranularity);
  return true;
}

uint64_t AddressSpace::Allocate(int device, size_t bytes, uint64_t alignment, Context* context,
                                unsigned flags) {
  if (bytes == 0 || bytes > Arena::Get().bytes()) return 0;
  alignment = std::max(alignment, kMinAlignment);
  base::MutexLock lock(mutex_);
  uint64_t address = 0;
  bool small = bytes < kSmallAllocation && alignment <= kSmallAllocation;
  if (small) {
    size_t rounded = RoundUp(bytes, kMinAlignment);
    address = small_heaps_[device].TakeLowest(rounded, alignment);
    if (address == 0 && GrowSmallHeap(device)) {
      address = small_heaps_[device].TakeLowest(rounded, alignment);
    }
  } else {
    size_t rounded = RoundUp(bytes, kChunkGranularity);
    auto chunk = PhysicalMemory::Get().Create(device, rounded);
    if (!chunk) return 0;
    address = ranges_.TakeHighest(rounded, std::max(alignment, kChunkGranularity));
    if (address != 0 && !AttachPlain(address, std::move(chunk))) {
      ranges_.Give(address, rounded);
      return 0;
    }
  }
  if (address == 0) return 0;
  allocations_[address] = {address, bytes, MemoryKind::kDevice, device,
                           context, flags, next_id_++,          small};
  return address;
}

uint64_t AddressSpace::AllocatePinned(size_t bytes, unsigned flags, Context* context) {
  base::MutexLock lock(mutex_);
  return AllocateHost(MemoryKind::kPinned, bytes, flags, context);
}

uint64_t AddressSpace::AllocateManaged(size_t bytes, Context* context) {
  base::MutexLock lock(mutex_);
  uint64_t address = AllocateHost(MemoryKind::kDevice, bytes, 0, context);
  if (address != 0) managed_[address] = bytes;
  return address;
}

bool AddressSpace::IsManaged(uint64_t address) {
  base::MutexLock lock(mutex_);
  auto after = managed_.upper_bound(address);
  return after != managed_.begin() && address - std::prev(after)->first < std::prev(after)->second;
}

uint64_t AddressSpace::AllocateHost(MemoryKind kind, size_t bytes, unsigned flags,
                                    Context* context) {
  if (bytes == 0 || bytes > Arena::Get().bytes()) return 0;
  size_t rounded = RoundUp(bytes, kChunkGranularity);
  uint64_t address = ranges_.TakeHighest(rounded, kChunkGranularity);
  if (address == 0) return 0;
  if (!Attach(address, rounded, {rounded, nullptr, kAllDevices})) {
    ranges_.Give(address, rounded);
    return 0;
  }
  int device = context ? context->device : 0;
  allocations_[address] = {address, bytes, kind, device, context, flags, next_id_++};
  return address;
}

// Memory may also be registered inside a reservation of the arena: a shared segment that the caller
// mapped there, in whole granules.
CUresult AddressSpace::Register(uint64_t address, size_t bytes, unsigned flags, Context* context) {
  base::MutexLock lock(mutex_);
  auto taken = allocations_.lower_bound(address);
  if (taken != allocations_.begin()) {
    auto previous = std::prev(taken);
    if (previous->second.address + previous->second.bytes > address) taken = previous;
  }
  if (taken != allocations_.end() && taken->first < address + bytes) {
    return taken->second.kind == MemoryKind::kRegistered ? CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED
                                                         : CUDA_ERROR_INVALID_VALUE;
  }
  Arena& arena = Arena::Get();
  if (address - arena.base() < arena.bytes()) {
    if (address % kChunkGranularity != 0 || bytes % kChunkGranularity != 0 ||
        bytes > arena.bytes() - (address - arena.base())) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    arena.Mark(address, bytes, kAllDevices);
  } else {
    arena.hosts().Add(address, bytes);
  }
  allocations_[address] = {address, bytes,     MemoryKind::kRegistered, context->device, context,
                           flags,   next_id_++};
  return CUDA_SUCCESS;
}

void AddressSpace::FreeLocked(std::map<uint64_t, Allocation>::iterator allocation) {
  Allocation& a = allocation->second;
  managed_.erase(managed_.lower_bound(a.address), managed_.lower_bound(a.address + a.bytes));
  if (a.kind == MemoryKind::kRegistered) {
    Arena& arena = Arena::Get();
    if (a.address - arena.base() < arena.bytes()) {
      arena.Mark(a.address, a.bytes, 0);
    } else {
      arena.hosts().Remove(a.address);
    }
  } else if (a.small) {
    small_heaps_[a.device].Give(a.address, RoundUp(a.bytes, kMinAlignment));
  } else {
    auto mapping = mappings_.find(a.address);
    size_t bytes = mapping->second.bytes;
    Detach(mapping);
    ranges_.Give(a.address, bytes);
  }
  allocations_.erase(allocation);
}

CUresult AddressSpace::Free(uint64_t address, MemoryKind kind) {
  base::MutexLock lock(mutex_);
  auto allocation = allocations_.find(address);
  if (allocation == allocations_.end() || allocation->second.kind != kind) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  FreeLocked(allocation);
  return CUDA_SUCCESS;
}

void AddressSpace::FreeAllOf(Context* context) {
  base::MutexLock lock(mutex_);
  for (auto a = allocations_.begin(); a != allocations_.end();) {
    auto next = std::next(a);
    if (a->second.context == context) FreeLocked(a);
    a = next;
  }
}

bool AddressSpace::SetSynchronous(uint64_t address, bool on) {
  base::MutexLock lock(mutex_);
  auto after = allocations_.upper_bound(address);
  if (after == allocations_.begin()) return false;
  Allocation& found = std::prev(after)->second;
  if (address - found.address >= found.bytes) return false;
  found.synchronous = on;
  return true;
}

std::optional<Allocation> AddressSpace::Find(uint64_t address) {
  base::MutexLock lock(mutex_);
  if (auto a = allocations_.upper_bound(address); a != allocations_.begin()) {
    --a;
    if (address - a->first < a->second.bytes) return a->second;
  }
  if (auto m = mappings_.upper_bound(address); m != mappings_.begin()) {
    --m;
    if (address - m->first < m->second.bytes && m->second.chunk && InReservation(m->first, 1)) {
      return Allocation{.address = m->first,
                        .bytes = m->second.bytes,
                        .device = m->second.chunk->device,
                        .id = m->first};
    }
  }
  return std::nullopt;
}

}  // namespace softgpu
