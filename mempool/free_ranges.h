// Free stretches of addresses: best fit, neighbours joined. Every operation takes logarithmic time,
// but for those that say where among the addresses.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "mempool/device.h"

namespace longwire::mempool {

class FreeRanges {
 public:
  void Add(uint64_t address, uint64_t bytes) {
    if (bytes == 0) return;
    auto next = by_address_.lower_bound(address);
    if (next != by_address_.end() && address + bytes == next->first) {
      bytes += next->second;
      next = Erase(next);
    }
    if (next != by_address_.begin()) {
      auto before = std::prev(next);
      if (before->first + before->second == address) {
        address = before->first;
        bytes += before->second;
        Erase(before);
      }
    }
    by_address_[address] = bytes;
    by_size_.insert({bytes, address});
    total_ += bytes;
  }

  // The smallest stretch that `bytes` fit in, from its start.
  bool Take(uint64_t bytes, uint64_t* address) {
    auto found = by_size_.lower_bound({bytes, 0});
    if (found == by_size_.end()) return false;
    *address = found->second;
    Remove(found->second, bytes);
    return true;
  }

  // The lowest addresses, from `from` on, that `bytes` fit in.
  bool TakeLowest(uint64_t bytes, uint64_t* address, uint64_t from = 0) {
    for (auto [start, length] : by_address_) {
      uint64_t before = from > start ? from - start : 0;
      if (length < bytes || length - bytes < before) continue;
      *address = start + before;
      Remove(*address, bytes);
      return true;
    }
    return false;
  }

  // The highest.
  bool TakeHighest(uint64_t bytes, uint64_t* address) {
    for (auto range = by_address_.rbegin(); range != by_address_.rend(); ++range) {
      if (range->second < bytes) continue;
      *address = range->first + range->second - bytes;
      Remove(*address, bytes);
      return true;
    }
    return false;
  }

  // True if all of the stretch is free.
  bool Contains(uint64_t address, uint64_t bytes) const {
    auto after = by_address_.upper_bound(address);
    if (after == by_address_.begin()) return false;
    auto range = std::prev(after);
    return address - range->first <= range->second &&
           bytes <= range->second - (address - range->first);
  }

  // Takes a stretch that Contains out.
  void Remove(uint64_t address, uint64_t bytes) {
    auto range = std::prev(by_address_.upper_bound(address));
    uint64_t start = range->first, end = range->first + range->second;
    Erase(range);
    Insert(start, address - start);
    Insert(address + bytes, end - (address + bytes));
  }

  std::vector<Range> All() const {
    std::vector<Range> all;
    for (auto [address, bytes] : by_address_) all.push_back({address, bytes});
    return all;
  }
  uint64_t total() const { return total_; }
  uint64_t largest() const { return by_size_.empty() ? 0 : by_size_.rbegin()->first; }

 private:
  using Map = std::map<uint64_t, uint64_t>;
  Map::iterator Erase(Map::iterator range) {
    by_size_.erase({range->second, range->first});
    total_ -= range->second;
    return by_address_.erase(range);
  }
  void Insert(uint64_t address, uint64_t bytes) {
    if (bytes == 0) return;
    by_address_[address] = bytes;
    by_size_.insert({bytes, address});
    total_ += bytes;
  }

  Map by_address_;
  std::set<std::pair<uint64_t, uint64_t>> by_size_;
  uint64_t total_ = 0;
};

}  // namespace longwire::mempool
