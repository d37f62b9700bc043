// Resting frees: freed memory that may be used again when all work queued before the free has
// finished, on every stream. Collect takes time by the number of frees that it returns and of
// streams that are waited for, not by the number that rest.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <utility>
#include <vector>

#include "mempool/device.h"

namespace longwire::mempool {

class RestingFrees {
 public:
  explicit RestingFrees(Device& device) : device_(device) {}

  // Needs at least one mark. Marks are dropped when they are passed.
  void Add(const Range& range, std::vector<Mark> marks, Freed freed);
  // Removes and returns the ranges whose work is finished.
  std::vector<Range> Collect();
  // Takes a range of exactly this size that rests for this stream alone: the stream may use it at
  // once.
  bool TakeSame(uint64_t bytes, void* stream, uint64_t* address);
  // Takes a range of exactly this size that was freed kForAll and rests for one stream alone. Every
  // stream may use it, since the device orders all later work behind that stream's.
  bool TakeBehind(uint64_t bytes, uint64_t* address);
  // The marks that the oldest resting free still waits for; empty if nothing rests.
  std::vector<Mark> OldestMarks() const;
  std::vector<Range> All() const;

  bool empty() const { return rests_.empty(); }
  uint64_t bytes() const { return bytes_; }

 private:
  struct Rest;
  using Rests = std::list<Rest>;
  using Key = std::pair<void*, uint64_t>;
  using Index = std::multimap<Key, Rests::iterator>;
  struct Rest {
    Range range;
    std::vector<Mark> marks;  // waited for from the last to the first
    Index::iterator waiting;  // by stream and position
    // By bytes and stream, or none if it was freed for all; same_.end() if it had several marks.
    Index::iterator same;
  };
  void Take(Rests::iterator rest, uint64_t* address);
  void Forget(Rests::iterator rest);

  Device& device_;
  Rests rests_;  // the oldest first
  Index waiting_;
  Index same_;
  uint64_t bytes_ = 0;
};

}  // namespace longwire::mempool
