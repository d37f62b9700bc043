// Free ranges of an address space, coalesced; first fit from either end. Not locked.
#pragma once

#include <cstdint>
#include <map>

namespace softgpu {

class RangeAllocator {
 public:
  void Give(uint64_t address, uint64_t bytes) {
    auto next = free_.lower_bound(address);
    if (next != free_.begin()) {
      auto previous = std::prev(next);
      if (previous->first + previous->second == address) {
        address = previous->first;
        bytes += previous->second;
        free_.erase(previous);
      }
    }
    if (next != free_.end() && address + bytes == next->first) {
      bytes += next->second;
      free_.erase(next);
    }
    free_[address] = bytes;
  }

  // True if the whole range was free; it is taken then.
  bool TakeAt(uint64_t address, uint64_t bytes) {
    auto range = free_.upper_bound(address);
    if (range == free_.begin()) return false;
    --range;
    uint64_t begin = range->first, end = begin + range->second;
    if (address >= end || bytes > end - address) return false;
    free_.erase(range);
    if (address > begin) free_[begin] = address - begin;
    if (address + bytes < end) free_[address + bytes] = end - address - bytes;
    return true;
  }

  // The highest (or lowest) aligned place that fits; 0 if none does. Alignment: a power of two.
  uint64_t TakeHighest(uint64_t bytes, uint64_t alignment) {
    for (auto range = free_.rbegin(); range != free_.rend(); ++range) {
      if (range->second < bytes) continue;
      uint64_t address = (range->first + range->second - bytes) & ~(alignment - 1);
      if (address >= range->first && TakeAt(address, bytes)) return address;
    }
    return 0;
  }
  uint64_t TakeLowest(uint64_t bytes, uint64_t alignment) {
    for (auto& [begin, size] : free_) {
      uint64_t address = (begin + alignment - 1) & ~(alignment - 1);
      if (size < bytes || address - begin > size - bytes) continue;
      if (TakeAt(address, bytes)) return address;
    }
    return 0;
  }

 private:
  std::map<uint64_t, uint64_t> free_;  // address -> bytes
};

}  // namespace softgpu
