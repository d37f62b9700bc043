// Blocks: large allocations, each of chunks of its own, so that its memory can move to other
// addresses. A block that was freed is kept as it is: the next one of its size takes no mapping.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "mempool/device.h"

namespace longwire::mempool {

struct Block {
  uint64_t bytes = 0;  // of all its chunks
  std::vector<Chunk> chunks;
  bool idle = false;  // mapped, and nobody's
};

class Blocks {
 public:
  using Table = std::map<uint64_t, Block>;  // by address

  // A block in use.
  void Add(uint64_t address, std::vector<Chunk> chunks) {
    Block& block = table_[address];
    block.chunks = std::move(chunks);
    for (const Chunk& chunk : block.chunks) block.bytes += chunk.bytes;
  }
  // The block in use that starts there, or nullptr.
  Block* InUse(uint64_t address) {
    auto found = table_.find(address);
    return found == table_.end() || found->second.idle ? nullptr : &found->second;
  }
  bool IsIdle(uint64_t address) const {
    auto found = table_.find(address);
    return found != table_.end() && found->second.idle;
  }
  void MakeIdle(uint64_t address) {
    Block& block = table_.at(address);
    block.idle = true;
    idle_.insert({block.bytes, address});
    idle_bytes_ += block.bytes;
  }
  // An idle block of just this size is in use again.
  bool Reuse(uint64_t bytes, uint64_t* address) {
    auto found = idle_.lower_bound({bytes, 0});
    if (found == idle_.end() || found->first != bytes) return false;
    *address = found->second;
    idle_.erase(found);
    idle_bytes_ -= bytes;
    table_.at(*address).idle = false;
    return true;
  }
  // Takes a block out, in use or idle.
  Block Remove(uint64_t address) {
    auto found = table_.find(address);
    Block block = std::move(found->second);
    if (block.idle) {
      idle_.erase({block.bytes, address});
      idle_bytes_ -= block.bytes;
    }
    table_.erase(found);
    return block;
  }

  const Table& table() const { return table_; }
  // Bytes and address.
  const std::set<std::pair<uint64_t, uint64_t>>& idle() const { return idle_; }
  uint64_t idle_bytes() const { return idle_bytes_; }

 private:
  Table table_;
  std::set<std::pair<uint64_t, uint64_t>> idle_;
  uint64_t idle_bytes_ = 0;
};

}  // namespace longwire::mempool
