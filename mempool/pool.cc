#include "mempool/pool.h"

#include <algorithm>

#include "mempool/lease_sizes.h"

namespace longwire::mempool {
namespace {

uint64_t BytesOf(const std::vector<Chunk>& chunks) {
  uint64_t bytes = 0;
  for (const Chunk& chunk : chunks) bytes += chunk.bytes;
  return bytes;
}

uint64_t Align(uint64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace

Pool::Pool(Device& device, const Range& window, uint64_t granularity)
    : device_(device),
      granularity_(std::max(granularity, kSlabBytes)),
      reservations_from_(window.address + window.bytes / 4 / granularity_ * granularity_),
      resting_(device) {
  window_.Add(window.address, window.bytes);
}

uint64_t Pool::RoundUp(uint64_t bytes) const {
  return (bytes + granularity_ - 1) / granularity_ * granularity_;
}

bool Pool::AddLeased(const Chunk& chunk, uint64_t* address) {
  if (!window_.TakeLowest(chunk.bytes, address)) return false;
  arena_.Add(*address, {chunk});
  leased_ += chunk.bytes;
  return true;
}

int Pool::Place(uint64_t bytes, void* stream, uint64_t* address) {
  bytes = Align(bytes);
  Collect();
  if (stream != nullptr && resting_.TakeSame(bytes, stream, address)) return kDone;
  if (!TakeFree(bytes, address)) {
    if (stream == nullptr && resting_.TakeBehind(bytes, address)) return kDone;
    if (WouldFitRested(bytes)) return kWaitForWork;
    int code = bytes >= kBlockBytes ? PlaceBlock(RoundUp(bytes), address) : GrowArena(bytes);
    if (code == kNoMemory && !resting_.empty()) return kWaitForWork;
    if (code != kDone) return code;
    if (bytes < kBlockBytes && !TakeFree(bytes, address)) return kNoMemory;
  }
  peak_ = std::max(peak_, leased_ - idle());
  return kDone;
}

bool Pool::TakeFree(uint64_t bytes, uint64_t* address) {
  // An idle block of the arena's size and a free chunk of the arena stand in for each other: they
  // are mapped already, so that is quicker than to wait for what rests.
  if (bytes < kBlockBytes) {
    return arena_.Take(bytes, address) || (AddIdleBlock() && arena_.Take(bytes, address));
  }
  uint64_t block = RoundUp(bytes);
  return blocks_.Reuse(block, address) || (block == kArenaChunk && TakeArenaChunk(address));
}

bool Pool::AddIdleBlock() {
  uint64_t block = 0;
  if (!blocks_.Reuse(kArenaChunk, &block)) return false;
  arena_.Add(block, blocks_.Remove(block).chunks);
  return true;
}

// The lowest stays the arena's, as where blocks are composed.
bool Pool::TakeArenaChunk(uint64_t* address) {
  std::vector<Arena::Place> free = arena_.FreeChunks();
  for (size_t i = 1; i < free.size(); ++i) {
    if (free[i].chunk.bytes != kArenaChunk) continue;
    arena_.Remove(free[i]);
    *address = free[i].address;
    blocks_.Add(*address, {free[i].chunk});
    return true;
  }
  return false;
}

void Pool::Free(uint64_t address, uint64_t bytes, std::vector<Mark> marks, Freed freed) {
  Range range{address, Align(bytes)};
  if (marks.empty()) {
    FreeNow(range);
  } else {
    resting_.Add(range, std::move(marks), freed);
  }
}

void Pool::FreeNow(const Range& range) {
  if (blocks_.InUse(range.address) != nullptr) {
    blocks_.MakeIdle(range.address);
  } else {
    arena_.Give(range.address, range.bytes);
  }
}

void Pool::Collect() {
  if (resting_.empty()) return;
  for (const Range& range : resting_.Collect()) FreeNow(range);
}

// Whether waiting for what rests is worth it.
bool Pool::WouldFitRested(uint64_t bytes) const {
  if (resting_.empty()) return false;
  std::vector<Range> in_arena;
  uint64_t chunks = spares_.bytes() + blocks_.idle_bytes();
  for (const Range& range : resting_.All()) {
    auto block = blocks_.table().find(range.address);
    if (block == blocks_.table().end()) {
      in_arena.push_back(range);
    } else if (block->second.bytes <= RoundUp(bytes)) {
      chunks += block->second.bytes;
    }
  }
  if (bytes < kBlockBytes) return !in_arena.empty() && arena_.WouldFit(bytes, in_arena);
  return chunks >= bytes && chunks > spares_.bytes() + blocks_.idle_bytes();
}

int Pool::PlaceBlock(uint64_t bytes, uint64_t* address) {
  std::vector<Chunk> chunks;
  TakeUnmapped();
  int code = Compose(bytes, Idle::kKeepOneOfArena, &chunks);
  if (code == kNoMemory) code = Compose(bytes, Idle::kAll, &chunks);
  if (code == kDone) code = MapChunks(chunks, false, address);
  if (code == kDone) blocks_.Add(*address, std::move(chunks));
  return code;
}

int Pool::GrowArena(uint64_t bytes) {
  std::vector<Chunk> chunks(1);
  uint64_t address = 0;
  int code = kDone;
  if (!spares_.Take(kArenaChunk, &chunks.front())) {
    chunks.clear();
    StayWithinPeak(kArenaChunk);
    code = Lease({kArenaChunk}, &chunks);
  }
  if (code == kNoMemory) code = Compose(RoundUp(bytes), Idle::kAll, &chunks);
  if (code == kDone) code = MapChunks(chunks, true, &address);
  if (code == kDone) arena_.Add(address, chunks);
  return code;
}

// The arena's chunks lie side by side at the low end of the window, so that allocations can reach
// across them; blocks come from the high end.
int Pool::MapChunks(const std::vector<Chunk>& chunks, bool low, uint64_t* address) {
  uint64_t bytes = BytesOf(chunks);
  int code = TakeWindow(bytes, low, address);
  if (code == kDone) {
    code = device_.Map(*address, chunks);
    if (code == kDone) return kDone;
    window_.Add(*address, bytes);
  }
  spares_.Add(chunks);
  return code;
}

void Pool::TakeUnmapped() {
  for (const Range& range : device_.TakeUnmapped()) window_.Add(range.address, range.bytes);
}

int Pool::TakeWindow(uint64_t bytes, bool low, uint64_t* address) {
  bool pending = device_.Pending();  // read first: an unmap that ends later is not taken below
  TakeUnmapped();
  bool found = low ? window_.TakeLowest(bytes, address) : window_.TakeHighest(bytes, address);
  if (found) return kDone;
  return pending ? kWaitForDevice : kNoMemory;
}

// Upwards, so that what lies behind the newest ones is free: programs that let a reservation grow
// ask for the addresses behind it.
int Pool::TakeAddresses(uint64_t bytes, uint64_t hint, uint64_t* address) {
  TakeUnmapped();
  if (hint % granularity_ == 0 && window_.Contains(hint, bytes)) {
    window_.Remove(hint, bytes);
    *address = hint;
    return kDone;
  }
  if (window_.TakeLowest(bytes, address, reservations_from_)) return kDone;
  return TakeWindow(bytes, false, address);
}

bool Pool::ChunksUnder(const Range& range, std::vector<Chunk>* chunks, uint64_t* start) const {
  auto block = blocks_.table().find(range.address);
  if (block != blocks_.table().end()) {
    *start = range.address;
    *chunks = block->second.chunks;
    return true;
  }
  auto entry = arena_.chunks().upper_bound(range.address);
  if (entry == arena_.chunks().begin()) return false;
  --entry;
  *start = entry->first;
  uint64_t at = entry->first, end = range.address + range.bytes;
  for (; at < end && entry != arena_.chunks().end() && entry->first == at; ++entry) {
    chunks->push_back(entry->second);
    at += entry->second.bytes;
  }
  return at >= end;
}

std::vector<Range> Pool::Mapped() const {
  FreeRanges joined;
  for (auto& [address, chunk] : arena_.chunks()) joined.Add(address, chunk.bytes);
  for (auto& [address, block] : blocks_.table()) joined.Add(address, block.bytes);
  return joined.All();
}

}  // namespace longwire::mempool
