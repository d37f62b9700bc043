// Mapped addresses that allocations below the size of a block share, with no regard to where one
// chunk ends and the next begins.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "mempool/device.h"
#include "mempool/free_ranges.h"
#include "mempool/slabs.h"

namespace longwire::mempool {

class Arena {
 public:
  // Chunks that are mapped one after the other from the address on.
  void Add(uint64_t address, const std::vector<Chunk>& chunks);
  bool Take(uint64_t bytes, uint64_t* address);
  void Give(uint64_t address, uint64_t bytes);
  // Whether Take would succeed if these were given first.
  bool WouldFit(uint64_t bytes, const std::vector<Range>& given) const;

  struct Place {
    uint64_t address = 0;
    Chunk chunk;
  };
  // The chunks of which nothing is in use, the lowest first.
  std::vector<Place> FreeChunks();
  // Takes such a chunk out.
  void Remove(const Place& place);

  uint64_t free_bytes() const { return free_.total(); }
  const std::map<uint64_t, Chunk>& chunks() const { return chunks_; }

 private:
  FreeRanges free_;
  Slabs slabs_;
  std::map<uint64_t, Chunk> chunks_;  // by address
};

}  // namespace longwire::mempool
