#include "client-shim/mirror/shared_blocks.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <utility>
#include <vector>

#include "base/lock_ranks.h"
#include "base/memory_sizes.h"
#include "base/mutex.h"
#include "base/try.h"
#include "client-shim/context/properties.h"
#include "client-shim/memory/device_memory.h"
#include "client-shim/memory/peers.h"
#include "client-shim/mirror/mirrors.h"
#include "client-shim/session/pinned_segment.h"
#include "client-shim/session/session.h"
#include "client-shim/support/holding.h"
#include "client-shim/support/never_destroyed.h"
#include "longwire/calls.h"
#include "longwire/shim_hand_written.h"
#include "mempool/free_ranges.h"

namespace longwire::shim {
namespace {

constexpr uint64_t kBlock = base::kDeviceGranularityBytes;  // multiples of it are mapped
constexpr uint64_t kSmallBytes = uint64_t{256} << 10;       // up to here allocations share blocks
constexpr uint64_t kAlignment = 512;

struct Block {
  uint64_t bytes = 0;
  SharedUse use = SharedUse::kManaged;
  bool small = false;
  uint64_t part = kNoPart;  // offset in the segment that is shared with the worker
  bool live = false;        // the part is where kernels reach it
  Context* context = nullptr;
  uint32_t context_number = 0;
  int device = 0;
  mempool::FreeRanges free;
  std::map<uint64_t, uint64_t> taken;  // address, bytes
  uint64_t used = 0;                   // bytes from the start that were ever taken
  Mirror* mirror = nullptr;            // while it is exposed
  std::vector<uint64_t> chunks;        // the same
  std::vector<int> accessors;          // the same: devices
  bool changing = false;               // a thread exposes or hides it, without the lock

  bool exposed() const { return live || mirror != nullptr; }
};

struct Blocks {
  std::atomic<size_t> count{0};
  std::atomic<size_t> exposed{0};
  // No thread waits for the worker, for addresses or for the mirrors while it holds it.
  base::Mutex mutex{base::ranks::kSharedBlocks};
  base::CondVar changed;  // a block is no longer changing
  std::map<uint64_t, Block> by_address LONGWIRE_GUARDED_BY(mutex);
  std::map<int, uint64_t> pinned LONGWIRE_GUARDED_BY(mutex);  // bytes of addresses, by device
  std::atomic<uint64_t> first{UINT64_MAX}, end{0};            // of all there were but live ones
};

Blocks& TheBlocks() {
  static NeverDestroyed<Blocks> blocks;
  return *blocks;
}

using Entry = std::map<uint64_t, Block>::iterator;

Entry Holding(Blocks& blocks, uint64_t address) LONGWIRE_REQUIRES(blocks.mutex) {
  return shim::Holding(blocks.by_address, address);
}

// The same, once no thread changes the block. The lock is released meanwhile.
Entry Settled(Blocks& blocks, base::MutexLock& lock, uint64_t address)
    LONGWIRE_REQUIRES(blocks.mutex) {
  while (true) {
    Entry entry = Holding(blocks, address);
    if (entry == blocks.by_address.end() || !entry->second.changing) return entry;
    blocks.changed.Wait(lock);
  }
}

// Maps the program's memory at the address: anonymous memory, or a part of the segment.
bool MapHere(uint64_t address, uint64_t bytes, int access, uint64_t part = kNoPart) {
  if (part != kNoPart) return MapPart(part, bytes, address);
  return mmap(reinterpret_cast<void*>(address), bytes, access,
              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) != MAP_FAILED;
}

// The device's side of a block.
struct Exposure {
  Mirror* mirror = nullptr;
  std::vector<uint64_t> chunks;
  std::vector<int> accessors;
};

CUresult MakeExposure(Context* context, const MirrorRange& range, Exposure* made) {
  LONGWIRE_TRY(
      MapSharedChunks(context, range.address, range.bytes, &made->chunks, &made->accessors));
  CUresult result = AddMirror(context, range, MirrorStart::kZeroed, &made->mirror);
  if (result == CUDA_SUCCESS) return result;
  UnmapSharedChunks(context->device, range.address, range.bytes, made->chunks);
  *made = {};
  return result;
}

// The lock is released while the thread waits for the worker, as in Hide.
CUresult Expose(Blocks& blocks, Entry entry) LONGWIRE_REQUIRES(blocks.mutex) {
  auto& [address, block] = *entry;
  if (block.exposed()) return CUDA_SUCCESS;
  block.changing = true;
  const bool managed = block.use == SharedUse::kManaged;
  const MirrorRange range{address, address, block.bytes, false, managed, block.used};
  Exposure made;
  blocks.mutex.Unlock();
  CUresult result = MakeExposure(block.context, range, &made);
  blocks.mutex.Lock();
  block.changing = false;
  blocks.changed.NotifyAll();
  block.mirror = made.mirror;
  block.chunks = std::move(made.chunks);
  block.accessors = std::move(made.accessors);
  if (result != CUDA_SUCCESS) return result;
  blocks.exposed.fetch_add(1);
  return CUDA_SUCCESS;
}

// `context_ended`: the worker has removed the mirror already.
void Hide(Blocks& blocks, Entry entry, bool context_ended) LONGWIRE_REQUIRES(blocks.mutex) {
  auto& [address, block] = *entry;
  if (block.mirror == nullptr) return;
  block.changing = true;
  Mirror* mirror = std::exchange(block.mirror, nullptr);
  std::vector<uint64_t> chunks = std::exchange(block.chunks, {});
  block.accessors.clear();
  blocks.exposed.fetch_sub(1);
  blocks.mutex.Unlock();
  if (!context_ended) RemoveMirror(mirror);
  UnmapSharedChunks(block.device, address, block.bytes, chunks);
  blocks.mutex.Lock();
  block.changing = false;
  blocks.changed.NotifyAll();
}

// Addresses for a block, with the program's memory there.
CUresult TakePlace(Blocks& blocks, Context* context, uint64_t whole, SharedUse use, uint64_t part,
                   uint64_t* address) {
  if (const uint64_t live = part == kNoPart ? 0 : LiveAddress(part); live != 0) {
    *address = live;
    return MapHere(live, whole, PROT_READ | PROT_WRITE, part) ? CUDA_SUCCESS
                                                              : CUDA_ERROR_OUT_OF_MEMORY;
  }
  if (use == SharedUse::kPinned) {
    // Most of the window is for the device's memory.
    const wire::Window& window = FindDevice(context->device)->description->window;
    base::MutexLock lock(blocks.mutex);
    uint64_t& pinned = blocks.pinned[context->device];
    if (pinned + whole > window.bytes / 4) return CUDA_ERROR_OUT_OF_MEMORY;
    pinned += whole;
  }
  DeviceMemory* memory = MemoryOf(context->device);
  bool mapped = memory->TakeAddresses(whole, 0, address);
  if (mapped && !MapHere(*address, whole, PROT_READ | PROT_WRITE, part)) {
    memory->GiveAddresses(*address, whole);
    mapped = false;
  }
  if (mapped) return CUDA_SUCCESS;
  if (use == SharedUse::kPinned) {
    base::MutexLock lock(blocks.mutex);
    blocks.pinned[context->device] -= whole;
  }
  return CUDA_ERROR_OUT_OF_MEMORY;
}

Entry AddBlock(Blocks& blocks, Context* context, uint64_t address, uint64_t bytes, SharedUse use,
               uint64_t part) LONGWIRE_REQUIRES(blocks.mutex) {
  uint64_t whole = base::RoundUp(bytes, kBlock);
  Entry added = blocks.by_address.try_emplace(address).first;
  Block& block = added->second;
  block.bytes = whole;
  block.use = use;
  block.small = bytes <= kSmallBytes;
  block.part = part;
  block.live = IsLive(address);
  block.context = context;
  block.context_number = context->number.load();
  block.device = context->device;
  block.free.Add(address, whole);
  blocks.count.fetch_add(1);
  if (block.live) {
    blocks.exposed.fetch_add(1);
    CountLive(1);
  } else {
    blocks.first = std::min(blocks.first.load(), address);
    blocks.end = std::max(blocks.end.load(), address + whole);
  }
  return added;
}

// The addresses of a block that is gone.
struct BlockPlace {
  uint64_t address = 0, bytes = 0, part = kNoPart;
  bool live = false;
  int device = 0;
};

// Removes the block; what it returns goes to GiveBack once the lock is released.
BlockPlace RemoveBlock(Blocks& blocks, Entry entry, bool context_ended)
    LONGWIRE_REQUIRES(blocks.mutex) {
  Hide(blocks, entry, context_ended);
  const Block& block = entry->second;
  BlockPlace place{entry->first, block.bytes, block.part, block.live, block.device};
  if (block.live) {
    blocks.exposed.fetch_sub(1);
    CountLive(-1);
  }
  if (block.use == SharedUse::kPinned && !block.live) blocks.pinned[block.device] -= block.bytes;
  blocks.by_address.erase(entry);
  blocks.count.fetch_sub(1);
  return place;
}

void GiveBack(const BlockPlace& place) {
  MapHere(place.address, place.bytes, PROT_NONE);
  if (!place.live) MemoryOf(place.device)->GiveAddresses(place.address, place.bytes);
  GivePart(place.part, place.bytes);
}

void TakeFrom(Entry entry, uint64_t bytes, uint64_t* address) {
  Block& block = entry->second;
  block.free.Take(bytes, address);
  block.taken[*address] = bytes;
  block.used =
      std::max(block.used, base::RoundUp(*address + bytes, base::kPageBytes) - entry->first);
}

// From a block that small allocations share.
bool TakeSmall(Context* context, uint64_t rounded, SharedUse use, uint64_t* address) {
  if (rounded > kSmallBytes) return false;
  Blocks& blocks = TheBlocks();
  base::MutexLock lock(blocks.mutex);
  uint32_t number = context->number.load();
  for (auto entry = blocks.by_address.begin(); entry != blocks.by_address.end(); ++entry) {
    Block& block = entry->second;
    if (!block.small || block.use != use || block.context_number != number) continue;
    if (block.changing) continue;
    if (block.free.largest() < rounded) continue;
    TakeFrom(entry, rounded, address);
    const bool mirrored = block.mirror != nullptr;
    const uint64_t start = entry->first, used = block.used;
    lock.Unlock();
    if (mirrored) GrowMirror(start, used);
    return true;
  }
  return false;
}

// Pinning takes long: it is done without the lock.
CUresult TakeNewBlock(Context* context, uint64_t rounded, SharedUse use, uint64_t* address) {
  uint64_t whole = base::RoundUp(rounded, kBlock), start = 0;
  uint64_t part = use == SharedUse::kPinned ? TakePart(whole) : kNoPart;
  Blocks& blocks = TheBlocks();
  CUresult result = TakePlace(blocks, context, whole, use, part, &start);
  if (result != CUDA_SUCCESS) {
    GivePart(part, whole);
    return result;
  }
  base::MutexLock lock(blocks.mutex);
  Entry entry = AddBlock(blocks, context, start, rounded, use, part);
  TakeFrom(entry, rounded, address);
  if (use == SharedUse::kManaged) result = Expose(blocks, entry);
  if (result == CUDA_SUCCESS) return CUDA_SUCCESS;
  const BlockPlace place = RemoveBlock(blocks, entry, false);
  lock.Unlock();
  GiveBack(place);
  return result;
}

}  // namespace

CUresult TakeShared(Context* context, uint64_t bytes, SharedUse use, uint64_t* address) {
  if (bytes > base::kMaxMemoryBytes) return CUDA_ERROR_OUT_OF_MEMORY;
  // Pinned memory is registered page by page: allocations do not share a page.
  uint64_t rounded =
      base::RoundUp(bytes, use == SharedUse::kPinned ? base::kPageBytes : kAlignment);
  if (TakeSmall(context, rounded, use, address)) return CUDA_SUCCESS;
  return TakeNewBlock(context, rounded, use, address);
}

void GiveShared(uint64_t address) {
  Blocks& blocks = TheBlocks();
  base::MutexLock lock(blocks.mutex);
  Entry entry = Settled(blocks, lock, address);
  if (entry == blocks.by_address.end()) return;
  Block& block = entry->second;
  auto taken = block.taken.find(address);
  if (taken == block.taken.end()) return;
  block.free.Add(address, taken->second);
  block.taken.erase(taken);
  if (!block.taken.empty()) return;
  const BlockPlace place = RemoveBlock(blocks, entry, false);
  lock.Unlock();
  GiveBack(place);
}

bool AnyHiddenBlocks() { return TheBlocks().count.load() != TheBlocks().exposed.load(); }

SharedSpan SpanOfShared() {
  Blocks& blocks = TheBlocks();
  uint64_t first = blocks.first.load(), end = blocks.end.load();
  return {first, end > first ? end - first : 0};
}

CUresult ExposeShared(uint64_t address) {
  Blocks& blocks = TheBlocks();
  base::MutexLock lock(blocks.mutex);
  Entry entry = Settled(blocks, lock, address);
  return entry == blocks.by_address.end() ? CUDA_ERROR_INVALID_VALUE : Expose(blocks, entry);
}

bool FindPart(uint64_t address, uint64_t bytes, uint64_t* offset) {
  Blocks& blocks = TheBlocks();
  if (blocks.count.load(std::memory_order_acquire) == 0) return false;
  base::MutexLock lock(blocks.mutex);
  Entry entry = Holding(blocks, address);
  if (entry == blocks.by_address.end() || entry->second.part == kNoPart) return false;
  uint64_t within = address - entry->first;
  if (bytes > entry->second.bytes - within) return false;
  *offset = entry->second.part + within;
  return true;
}

bool FindShared(uint64_t address, bool* exposed) {
  Blocks& blocks = TheBlocks();
  if (blocks.count.load(std::memory_order_acquire) == 0) return false;
  base::MutexLock lock(blocks.mutex);
  Entry entry = Holding(blocks, address);
  if (entry == blocks.by_address.end()) return false;
  *exposed = entry->second.exposed();
  return true;
}

bool FindSharedAccess(uint64_t address, int device, bool* reaches) {
  Blocks& blocks = TheBlocks();
  if (blocks.count.load(std::memory_order_acquire) == 0) return false;
  base::MutexLock lock(blocks.mutex);
  Entry entry = Holding(blocks, address);
  if (entry == blocks.by_address.end() || !entry->second.exposed()) return false;
  if (entry->second.live) {
    *reaches = true;
    return true;
  }
  const std::vector<int>& accessors = entry->second.accessors;
  *reaches = std::find(accessors.begin(), accessors.end(), device) != accessors.end();
  return true;
}

namespace {

// The context's next block that has to be removed or hidden, or that is changing.
Entry NextToForget(Blocks& blocks, uint32_t context_number) LONGWIRE_REQUIRES(blocks.mutex) {
  return std::ranges::find_if(blocks.by_address, [&](const auto& known) {
    const Block& block = known.second;
    return block.context_number == context_number &&
           (block.use == SharedUse::kManaged || block.mirror != nullptr || block.changing);
  });
}

}  // namespace

void ForgetSharedBlocks(uint32_t context_number) {
  Blocks& blocks = TheBlocks();
  while (true) {
    base::MutexLock lock(blocks.mutex);
    Entry entry = NextToForget(blocks, context_number);
    if (entry == blocks.by_address.end()) return;
    if (entry->second.changing) {
      blocks.changed.Wait(lock);
    } else if (entry->second.use == SharedUse::kManaged) {
      const BlockPlace place = RemoveBlock(blocks, entry, true);
      lock.Unlock();
      GiveBack(place);
    } else {
      Hide(blocks, entry, true);
    }
  }
}

CUresult MapSharedChunks(Context* context, uint64_t address, uint64_t bytes,
                         std::vector<uint64_t>* chunks, std::vector<int>* accessors) {
  int owner = context->device;
  DeviceMemory* memory = MemoryOf(owner);
  LONGWIRE_TRY(memory->LeaseChunks(bytes, chunks));
  calls::lwMap map;
  map.device = FindDevice(owner)->server_ordinal;
  map.address = address;
  map.chunk = *chunks;
  context->session->Submit({}, map, map.EncodedBytes());
  *accessors = LetPeersReach(owner, address, bytes);
  return CUDA_SUCCESS;
}

void UnmapSharedChunks(int device, uint64_t address, uint64_t bytes,
                       const std::vector<uint64_t>& chunks) {
  calls::lwUnmap unmap;
  unmap.address = address;
  unmap.bytes = bytes;
  // Waits: the addresses are free only once the worker has unmapped them.
  FindDevice(device)->session->CallAndWait({0, nullptr, wire::kWantsReply}, unmap);
  MemoryOf(device)->ReturnChunks(chunks);
}

}  // namespace longwire::shim
