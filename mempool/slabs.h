// Small allocations share slabs, so that each leaves its neighbours' stretches alone.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "mempool/free_ranges.h"

namespace longwire::mempool {

inline constexpr uint64_t kSlabBytes = uint64_t{2} << 20;
inline constexpr uint64_t kSmallBytes = uint64_t{512} << 10;  // up to here allocations share slabs

class Slabs {
 public:
  // In the fullest slab that has room.
  bool Take(uint64_t bytes, uint64_t* address) {
    auto found = by_room_.lower_bound({bytes, 0});
    if (found == by_room_.end()) return false;
    Slab& slab = slabs_.at(found->second);
    uint64_t start = found->second;
    if (start == empty_) empty_ = 0;
    slab.free.Take(bytes, address);
    SetRoom(start, slab);
    return true;
  }

  void Add(uint64_t start) {
    Slab& slab = slabs_[start];
    slab.free.Add(start, kSlabBytes);
    SetRoom(start, slab);
  }

  // False if the address is in no slab. *unused: a slab that is the caller's again, or 0. One slab
  // without allocations is kept.
  bool Give(uint64_t address, uint64_t bytes, uint64_t* unused) {
    *unused = 0;
    auto found = slabs_.upper_bound(address);
    if (found == slabs_.begin()) return false;
    --found;
    if (address - found->first >= kSlabBytes) return false;
    Slab& slab = found->second;
    slab.free.Add(address, bytes);
    SetRoom(found->first, slab);
    if (slab.free.total() == kSlabBytes && found->first != empty_) {
      *unused = TakeEmpty();
      empty_ = found->first;
    }
    return true;
  }

  // The slab without allocations is the caller's; 0 if there is none.
  uint64_t TakeEmpty() {
    uint64_t start = empty_;
    empty_ = 0;
    if (start == 0) return 0;
    by_room_.erase({kSlabBytes, start});
    slabs_.erase(start);
    return start;
  }

 private:
  struct Slab {
    FreeRanges free;
    uint64_t room = 0;  // the largest free stretch, as in by_room_
  };
  void SetRoom(uint64_t start, Slab& slab) {
    uint64_t room = slab.free.largest();
    if (room == slab.room) return;
    if (slab.room != 0) by_room_.erase({slab.room, start});
    if (room != 0) by_room_.insert({room, start});
    slab.room = room;
  }

  std::map<uint64_t, Slab> slabs_;                   // by start
  std::set<std::pair<uint64_t, uint64_t>> by_room_;  // room, start
  uint64_t empty_ = 0;                               // a slab without allocations, or 0
};

}  // namespace longwire::mempool
