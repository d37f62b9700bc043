#include "client-shim/shared_blocks.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <vector>

#include "client-shim/device_memory.h"
#include "client-shim/mirrors.h"
#include "client-shim/never_destroyed.h"
#include "client-shim/peers.h"
#include "client-shim/pinned_segment.h"
#include "client-shim/process.h"
#include "client-shim/properties.h"
#include "longwire/calls.h"
#include "longwire/shim_hand_written.h"
#include "mempool/free_ranges.h"

namespace longwire::shim {
namespace {

constexpr uint64_t kBlock = uint64_t{2} << 20;         // multiples of it are mapped
constexpr uint64_t kSmallBytes = uint64_t{256} << 10;  // up to here allocations share blocks
constexpr uint64_t kAlignment = 512;
constexpr uint64_t kPage = 4096;
constexpr uint64_t kMost = uint64_t{1} << 46;

struct Block {
  uint64_t bytes = 0;
  SharedUse use = SharedUse::kManaged;
  bool small = false;
  uint64_t part = kNoPart;  // where in the segment that the worker has, too
  Context* context = nullptr;
  uint32_t context_number = 0;
  int device = 0;
  mempool::FreeRanges free;
  std::map<uint64_t, uint64_t> taken;  // address, bytes
  uint64_t used = 0;                   // bytes from the start that were ever taken
  Mirror* mirror = nullptr;            // while it is exposed
  std::vector<uint64_t> chunks;        // the same
  std::vector<int> accessors;          // the same: devices
};

struct Blocks {
  std::atomic<size_t> count{0};
  std::atomic<size_t> exposed{0};
  std::mutex mutex;
  std::map<uint64_t, Block> by_address;
  std::map<int, uint64_t> pinned;                   // bytes of addresses, by device
  std::atomic<uint64_t> first{UINT64_MAX}, end{0};  // of all that there were
};

Blocks& TheBlocks() {
  static NeverDestroyed<Blocks> blocks;
  return *blocks;
}

uint64_t RoundUp(uint64_t bytes, uint64_t to) { return (bytes + to - 1) / to * to; }

using Entry = std::map<uint64_t, Block>::iterator;

// The lock is held, as in what follows up to TakeShared.
Entry Holding(Blocks& blocks, uint64_t address) {
  auto after = blocks.by_address.upper_bound(address);
  if (after == blocks.by_address.begin()) return blocks.by_address.end();
  auto found = std::prev(after);
  return address - found->first < found->second.bytes ? found : blocks.by_address.end();
}

// The program's own memory, or a part of the segment.
bool MapHere(uint64_t address, uint64_t bytes, int access, uint64_t part = kNoPart) {
  if (part != kNoPart) return MapPart(part, bytes, address);
  return mmap(reinterpret_cast<void*>(address), bytes, access,
              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) != MAP_FAILED;
}

CUresult Expose(uint64_t address, Block& block) {
  if (block.mirror != nullptr) return CUDA_SUCCESS;
  CUresult result =
      MapSharedChunks(block.context, address, block.bytes, &block.chunks, &block.accessors);
  if (result != CUDA_SUCCESS) return result;
  MirrorRange range{address, address, block.bytes, false, block.use == SharedUse::kManaged};
  result = AddMirror(block.context, range, MirrorStart::kCleared, &block.mirror);
  if (result == CUDA_SUCCESS) {
    TheBlocks().exposed.fetch_add(1);
    SetMirroredBytes(block.mirror, block.used);
  } else {
    UnmapSharedChunks(block.device, address, block.bytes, block.chunks);
    block.chunks.clear();
  }
  return result;
}

// `context_ended`: the worker has forgotten the mirror by itself.
void Hide(uint64_t address, Block& block, bool context_ended) {
  if (block.mirror == nullptr) return;
  if (!context_ended) RemoveMirror(block.mirror);
  block.mirror = nullptr;
  TheBlocks().exposed.fetch_sub(1);
  UnmapSharedChunks(block.device, address, block.bytes, block.chunks);
  block.chunks.clear();
  block.accessors.clear();
}

CUresult AddBlock(Blocks& blocks, Context* context, uint64_t bytes, SharedUse use, uint64_t part,
                  Entry* added) {
  DeviceMemory* memory = MemoryOf(context->device);
  uint64_t whole = RoundUp(bytes, kBlock), address = 0;
  if (use == SharedUse::kPinned) {
    // Most of the window is for the device's memory.
    const wire::Window& window = FindDevice(context->device)->description->window;
    uint64_t& pinned = blocks.pinned[context->device];
    if (pinned + whole > window.bytes / 4) return CUDA_ERROR_OUT_OF_MEMORY;
    pinned += whole;
  }
  bool mapped = memory->TakeAddresses(whole, 0, &address);
  if (mapped && !MapHere(address, whole, PROT_READ | PROT_WRITE, part)) {
    memory->GiveAddresses(address, whole);
    mapped = false;
  }
  if (!mapped) {
    if (use == SharedUse::kPinned) blocks.pinned[context->device] -= whole;
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  *added = blocks.by_address.try_emplace(address).first;
  Block& block = (*added)->second;
  block.bytes = whole;
  block.use = use;
  block.small = bytes <= kSmallBytes;
  block.part = part;
  block.context = context;
  block.context_number = context->number.load();
  block.device = context->device;
  block.free.Add(address, whole);
  blocks.first = std::min(blocks.first.load(), address);
  blocks.end = std::max(blocks.end.load(), address + whole);
  blocks.count.fetch_add(1);
  return CUDA_SUCCESS;
}

// Its part of the segment, if it has one, is still to be given back.
void RemoveBlock(Blocks& blocks, Entry entry, bool context_ended) {
  auto& [address, block] = *entry;
  Hide(address, block, context_ended);
  MapHere(address, block.bytes, PROT_NONE);
  MemoryOf(block.device)->GiveAddresses(address, block.bytes);
  if (block.use == SharedUse::kPinned) blocks.pinned[block.device] -= block.bytes;
  blocks.by_address.erase(entry);
  blocks.count.fetch_sub(1);
}

void TakeFrom(Entry entry, uint64_t bytes, uint64_t* address) {
  Block& block = entry->second;
  block.free.Take(bytes, address);
  block.taken[*address] = bytes;
  block.used = std::max(block.used, RoundUp(*address + bytes, kPage) - entry->first);
  if (block.mirror != nullptr) SetMirroredBytes(block.mirror, block.used);
}

// From a block that small allocations share.
bool TakeSmall(Blocks& blocks, Context* context, uint64_t rounded, SharedUse use,
               uint64_t* address) {
  if (rounded > kSmallBytes) return false;
  uint32_t number = context->number.load();
  for (auto entry = blocks.by_address.begin(); entry != blocks.by_address.end(); ++entry) {
    Block& block = entry->second;
    if (!block.small || block.use != use || block.context_number != number) continue;
    if (block.free.largest() < rounded) continue;
    TakeFrom(entry, rounded, address);
    return true;
  }
  return false;
}

// The lock is not held: pinning takes long.
CUresult TakeNewBlock(Context* context, uint64_t rounded, SharedUse use, uint64_t* address) {
  uint64_t whole = RoundUp(rounded, kBlock);
  uint64_t part = use == SharedUse::kPinned ? TakePart(whole) : kNoPart;
  Blocks& blocks = TheBlocks();
  std::unique_lock<std::mutex> lock(blocks.mutex);
  Entry entry;
  CUresult result = AddBlock(blocks, context, rounded, use, part, &entry);
  if (result != CUDA_SUCCESS) {
    lock.unlock();
    GivePart(part, whole);
    return result;
  }
  TakeFrom(entry, rounded, address);
  if (use == SharedUse::kManaged) result = Expose(entry->first, entry->second);
  if (result != CUDA_SUCCESS) RemoveBlock(blocks, entry, false);
  return result;
}

}  // namespace

CUresult TakeShared(Context* context, uint64_t bytes, SharedUse use, uint64_t* address) {
  if (bytes > kMost) return CUDA_ERROR_OUT_OF_MEMORY;
  // Pinned memory is handed over page by page, so nobody shares a page with it.
  uint64_t rounded = RoundUp(bytes, use == SharedUse::kPinned ? kPage : kAlignment);
  {
    Blocks& blocks = TheBlocks();
    std::lock_guard<std::mutex> lock(blocks.mutex);
    if (TakeSmall(blocks, context, rounded, use, address)) return CUDA_SUCCESS;
  }
  return TakeNewBlock(context, rounded, use, address);
}

void GiveShared(uint64_t address) {
  Blocks& blocks = TheBlocks();
  std::unique_lock<std::mutex> lock(blocks.mutex);
  Entry entry = Holding(blocks, address);
  if (entry == blocks.by_address.end()) return;
  Block& block = entry->second;
  auto taken = block.taken.find(address);
  if (taken == block.taken.end()) return;
  block.free.Add(address, taken->second);
  block.taken.erase(taken);
  if (!block.taken.empty()) return;
  uint64_t part = block.part, bytes = block.bytes;
  RemoveBlock(blocks, entry, false);
  lock.unlock();
  GivePart(part, bytes);
}

bool AnyHiddenBlocks() { return TheBlocks().count.load() != TheBlocks().exposed.load(); }

SharedSpan SpanOfShared() {
  Blocks& blocks = TheBlocks();
  uint64_t first = blocks.first.load(), end = blocks.end.load();
  return {first, end > first ? end - first : 0};
}

CUresult ExposeShared(uint64_t address) {
  Blocks& blocks = TheBlocks();
  std::lock_guard<std::mutex> lock(blocks.mutex);
  Entry entry = Holding(blocks, address);
  return entry == blocks.by_address.end() ? CUDA_ERROR_INVALID_VALUE
                                          : Expose(entry->first, entry->second);
}

bool FindPart(uint64_t address, uint64_t bytes, uint64_t* offset) {
  Blocks& blocks = TheBlocks();
  if (blocks.count.load(std::memory_order_acquire) == 0) return false;
  std::lock_guard<std::mutex> lock(blocks.mutex);
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
  std::lock_guard<std::mutex> lock(blocks.mutex);
  Entry entry = Holding(blocks, address);
  if (entry == blocks.by_address.end()) return false;
  *exposed = entry->second.mirror != nullptr;
  return true;
}

bool FindSharedAccess(uint64_t address, int device, bool* reaches) {
  Blocks& blocks = TheBlocks();
  if (blocks.count.load(std::memory_order_acquire) == 0) return false;
  std::lock_guard<std::mutex> lock(blocks.mutex);
  Entry entry = Holding(blocks, address);
  if (entry == blocks.by_address.end() || entry->second.mirror == nullptr) return false;
  const std::vector<int>& accessors = entry->second.accessors;
  *reaches = std::find(accessors.begin(), accessors.end(), device) != accessors.end();
  return true;
}

void ForgetSharedBlocks(uint32_t context_number) {
  Blocks& blocks = TheBlocks();
  std::lock_guard<std::mutex> lock(blocks.mutex);
  for (Entry entry = blocks.by_address.begin(); entry != blocks.by_address.end();) {
    Entry next = std::next(entry);
    if (entry->second.context_number == context_number) {
      if (entry->second.use == SharedUse::kManaged) {
        RemoveBlock(blocks, entry, true);
      } else {
        Hide(entry->first, entry->second, true);
      }
    }
    entry = next;
  }
}

CUresult MapSharedChunks(Context* context, uint64_t address, uint64_t bytes,
                         std::vector<uint64_t>* chunks, std::vector<int>* accessors) {
  int owner = context->device;
  DeviceMemory* memory = MemoryOf(owner);
  CUresult result = memory->LeaseChunks(bytes, chunks);
  if (result != CUDA_SUCCESS) return result;
  calls::lwMap map;
  map.device = FindDevice(owner)->server_ordinal;
  map.address = address;
  map.chunk = *chunks;
  TheSession().Submit({}, map, 64 + chunks->size() * sizeof(uint64_t));
  *accessors = LetPeersReach(owner, address, bytes);
  return CUDA_SUCCESS;
}

void UnmapSharedChunks(int device, uint64_t address, uint64_t bytes,
                       const std::vector<uint64_t>& chunks) {
  calls::lwUnmap unmap;
  unmap.address = address;
  unmap.bytes = bytes;
  // The addresses are free only when the worker has unmapped them.
  TheSession().CallAndWait({0, nullptr, wire::kWantsReply}, unmap);
  MemoryOf(device)->ReturnChunks(chunks);
}

}  // namespace longwire::shim
