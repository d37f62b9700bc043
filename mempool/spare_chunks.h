// Leased chunks that are mapped nowhere, by size.
#pragma once

#include <cstdint>
#include <iterator>
#include <map>
#include <vector>

#include "mempool/device.h"

namespace longwire::mempool {

class SpareChunks {
 public:
  void Add(const Chunk& chunk) {
    by_size_[chunk.bytes].push_back(chunk);
    bytes_ += chunk.bytes;
  }
  void Add(const std::vector<Chunk>& chunks) {
    for (const Chunk& chunk : chunks) Add(chunk);
  }
  // Takes one of exactly this size.
  bool Take(uint64_t bytes, Chunk* chunk) {
    auto found = by_size_.find(bytes);
    if (found == by_size_.end()) return false;
    *chunk = found->second.back();
    Remove(found);
    return true;
  }
  // Takes the largest of at most `bytes`.
  bool TakeUpTo(uint64_t bytes, Chunk* chunk) {
    auto found = by_size_.upper_bound(bytes);
    if (found == by_size_.begin()) return false;
    return Take(std::prev(found)->first, chunk);
  }
  uint64_t LargestUpTo(uint64_t bytes) const {
    auto found = by_size_.upper_bound(bytes);
    return found == by_size_.begin() ? 0 : std::prev(found)->first;
  }
  // Takes the smallest of at least `bytes`, or else the largest.
  bool TakeAbout(uint64_t bytes, Chunk* chunk) {
    if (by_size_.empty()) return false;
    auto found = by_size_.lower_bound(bytes);
    return Take(found == by_size_.end() ? by_size_.rbegin()->first : found->first, chunk);
  }
  uint64_t bytes() const { return bytes_; }

 private:
  using Table = std::map<uint64_t, std::vector<Chunk>>;
  void Remove(Table::iterator found) {
    bytes_ -= found->first;
    found->second.pop_back();
    if (found->second.empty()) by_size_.erase(found);
  }

  Table by_size_;
  uint64_t bytes_ = 0;
};

}  // namespace longwire::mempool
