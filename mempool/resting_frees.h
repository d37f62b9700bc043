// Frees that rest: memory that may be used again when the work queued before the free has finished
// on every stream that had some. A look for what is over costs by what is over and by the streams
// that are waited for, not by what rests.
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

  // There is at least one mark; they are dropped when they are passed.
  void Add(const Range& range, std::vector<Mark> marks, Freed freed);
  // Those that are over and were not taken out before.
  std::vector<Range> Collect();
  // Of just this size, and resting for this stream alone: it may be used there at once.
  bool TakeSame(uint64_t bytes, void* stream, uint64_t* address);
  // Of just this size, freed for all, and resting for one stream alone: it may be used everywhere,
  // since the device puts all later work behind that.
  bool TakeBehind(uint64_t bytes, uint64_t* address);
  // What the oldest one still waits for; empty if nothing rests.
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
    std::vector<Mark> marks;  // it waits for the last one first
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
