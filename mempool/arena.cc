#include "mempool/arena.h"

namespace longwire::mempool {

void Arena::Add(uint64_t address, const std::vector<Chunk>& chunks) {
  for (const Chunk& chunk : chunks) {
    chunks_[address] = chunk;
    free_.Add(address, chunk.bytes);
    address += chunk.bytes;
  }
}

bool Arena::Take(uint64_t bytes, uint64_t* address) {
  if (bytes > kSmallBytes) return free_.Take(bytes, address);
  if (slabs_.Take(bytes, address)) return true;
  uint64_t start = 0;
  if (!free_.Take(kSlabBytes, &start)) return false;
  slabs_.Add(start);
  return slabs_.Take(bytes, address);
}

void Arena::Give(uint64_t address, uint64_t bytes) {
  uint64_t unused = 0;
  if (bytes > kSmallBytes || !slabs_.Give(address, bytes, &unused)) {
    free_.Add(address, bytes);
  } else if (unused != 0) {
    free_.Add(unused, kSlabBytes);
  }
}

bool Arena::WouldFit(uint64_t bytes, const std::vector<Range>& given) const {
  FreeRanges joined = free_;
  for (const Range& range : given) {
    if (range.bytes >= bytes) return true;
    joined.Add(range.address, range.bytes);
  }
  return joined.largest() >= bytes;
}

std::vector<Arena::Place> Arena::FreeChunks() {
  uint64_t empty = slabs_.TakeEmpty();
  if (empty != 0) free_.Add(empty, kSlabBytes);
  std::vector<Place> places;
  for (auto& [address, chunk] : chunks_) {
    if (free_.Contains(address, chunk.bytes)) places.push_back({address, chunk});
  }
  return places;
}

void Arena::Remove(const Place& place) {
  free_.Remove(place.address, place.chunk.bytes);
  chunks_.erase(place.address);
}

}  // namespace longwire::mempool
