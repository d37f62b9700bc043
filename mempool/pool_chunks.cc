// Where the pool's chunks come from and go to: composing, leasing, giving back.
#include <algorithm>

#include "mempool/lease_sizes.h"
#include "mempool/pool.h"

namespace longwire::mempool {
namespace {

// What may be leased beyond the most that was used at once: one chunk of the largest class.
constexpr uint64_t kSlack = 512 * kMiB;

struct Candidate {
  uint64_t bytes = 0;  // of the chunk
  uint64_t address = 0;
  bool in_arena = false;
  Chunk chunk;
};

}  // namespace

int Pool::Lease(const std::vector<uint64_t>& sizes, std::vector<Chunk>* chunks) {
  int code = device_.Lease(sizes, chunks);
  if (code != kDone) return code;
  for (uint64_t size : sizes) leased_ += size;
  return kDone;
}

void Pool::Dissolve(uint64_t address) {
  Block block = blocks_.Remove(address);
  device_.Unmap({address, block.bytes});
  spares_.Add(block.chunks);
}

// The largest chunks that are not too large, from wherever they are; unmapped ones first among
// equals. A block loses all its chunks at once. Returns the bytes that are missing.
uint64_t Pool::Gather(uint64_t bytes, Idle idle, std::vector<Chunk>* chunks) {
  std::vector<Candidate> candidates;
  for (auto [size, address] : blocks_.idle()) {
    for (const Chunk& chunk : blocks_.table().at(address).chunks) {
      candidates.push_back({chunk.bytes, address, false, {}});
    }
  }
  bool keep = idle == Idle::kKeepOneOfArena;
  for (const Arena::Place& place : arena_.FreeChunks()) {
    if (!keep) candidates.push_back({place.chunk.bytes, place.address, true, place.chunk});
    keep = false;
  }
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate& a, const Candidate& b) { return a.bytes > b.bytes; });
  for (size_t next = 0; bytes > 0;) {
    for (; next < candidates.size(); ++next) {
      bool gone = !candidates[next].in_arena && !blocks_.IsIdle(candidates[next].address);
      if (!gone && candidates[next].bytes <= bytes) break;
    }
    uint64_t mapped = next < candidates.size() ? candidates[next].bytes : 0;
    if (mapped > spares_.LargestUpTo(bytes)) {
      const Candidate& from = candidates[next++];
      if (from.in_arena) {
        Evict({from.address, from.chunk});
      } else {
        Dissolve(from.address);
      }
    }
    Chunk chunk;
    if (!spares_.TakeUpTo(bytes, &chunk)) break;
    chunks->push_back(chunk);
    bytes -= chunk.bytes;
  }
  return bytes;
}

void Pool::Evict(const Arena::Place& place) {
  arena_.Remove(place);
  device_.Unmap({place.address, place.chunk.bytes});
  spares_.Add(place.chunk);
}

int Pool::Compose(uint64_t bytes, Idle idle, std::vector<Chunk>* chunks) {
  chunks->clear();
  uint64_t missing = Gather(bytes, idle, chunks);
  std::vector<Chunk> order = Arrange(*chunks, missing);
  if (missing == 0) {
    *chunks = std::move(order);
    return kDone;
  }
  if (idle == Idle::kAll) {
    ReturnIdle(UINT64_MAX, idle);
  } else {
    StayWithinPeak(missing);
  }
  std::vector<uint64_t> sizes;
  for (const Chunk& chunk : order) {
    if (chunk.id == 0) sizes.push_back(chunk.bytes);
  }
  std::vector<Chunk> leased;
  bool pending = device_.Pending();  // asked before: it may be over when the lease has failed
  int code = Lease(sizes, &leased);
  if (code != kDone) {
    spares_.Add(*chunks);
    chunks->clear();
    bool wait = code == kNoMemory && idle == Idle::kAll && pending;
    return wait ? kWaitForDevice : code;
  }
  chunks->clear();
  auto next = leased.begin();
  for (const Chunk& chunk : order) {
    if (chunk.id != 0) chunks->push_back(chunk);
    for (uint64_t left = chunk.id == 0 ? chunk.bytes : 0; left != 0; left -= next++->bytes) {
      chunks->push_back(*next);
    }
  }
  return kDone;
}

// Moves idle chunks of about `bytes` to the spares. False if nothing is idle.
bool Pool::UnmapSomeIdle(uint64_t bytes, Idle idle) {
  auto& blocks = blocks_.idle();
  if (!blocks.empty()) {
    auto block = blocks.lower_bound({bytes, 0});
    Dissolve(block == blocks.end() ? blocks.rbegin()->second : block->second);
    return true;
  }
  std::vector<Arena::Place> free = arena_.FreeChunks();
  if (idle == Idle::kKeepOneOfArena && !free.empty()) free.erase(free.begin());
  for (const Arena::Place& place : free) Evict(place);
  return !free.empty();
}

uint64_t Pool::ReturnIdle(uint64_t bytes, Idle idle) {
  std::vector<Chunk> chunks;
  uint64_t returned = 0;
  while (returned < bytes) {
    Chunk chunk;
    if (!spares_.TakeAbout(bytes - returned, &chunk)) {
      if (!UnmapSomeIdle(bytes - returned, idle)) break;
      continue;
    }
    chunks.push_back(chunk);
    returned += chunk.bytes;
  }
  leased_ -= returned;
  if (!chunks.empty()) device_.Return(chunks);
  return returned;
}

void Pool::StayWithinPeak(uint64_t more) {
  uint64_t used = leased_ - idle();
  uint64_t most = std::max(peak_, used + more) + kSlack;
  if (leased_ + more > most) ReturnIdle(leased_ + more - most, Idle::kKeepOneOfArena);
}

uint64_t Pool::GiveBack(uint64_t bytes, bool keep_one) {
  Collect();
  return ReturnIdle(bytes, keep_one ? Idle::kKeepOneOfArena : Idle::kAll);
}

uint64_t Pool::idle_chunks() {
  uint64_t bytes = spares_.bytes() + blocks_.idle_bytes();
  for (const Arena::Place& place : arena_.FreeChunks()) bytes += place.chunk.bytes;
  return bytes;
}

int Pool::LeaseOutside(uint64_t bytes, std::vector<Chunk>* chunks) {
  bool pending = device_.Pending();  // as above
  int code = device_.Lease(LeaseSizes(RoundUp(bytes)), chunks);
  if (code != kNoMemory) return code;
  Collect();
  bool returned = ReturnIdle(UINT64_MAX, Idle::kAll) != 0;
  return pending || returned ? kWaitForDevice : code;
}

}  // namespace longwire::mempool
