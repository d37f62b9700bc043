// Positions of the log whose progress somebody wants, in ascending order. The set keeps a bounded
// number of them; if there are more, every position up to the newest counts as wanted.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>

namespace longwire::worker {

class PositionSet {
 public:
  static constexpr size_t kMaxPositions = 64;

  void Add(uint64_t position) {
    auto at = std::lower_bound(positions_.begin(), positions_.end(), position);
    if (at != positions_.end() && *at == position) return;
    if (positions_.size() == kMaxPositions) {
      every_up_to_ = std::max(every_up_to_, position);
    } else {
      positions_.insert(at, position);
    }
  }
  bool AnyUpTo(uint64_t position) const {
    return every_up_to_ != 0 || (!positions_.empty() && positions_.front() <= position);
  }
  // Removes the positions up to this one. False if there are none.
  bool Reach(uint64_t position) {
    bool any = AnyUpTo(position);
    while (!positions_.empty() && positions_.front() <= position) positions_.pop_front();
    if (position >= every_up_to_) every_up_to_ = 0;
    return any;
  }

 private:
  std::deque<uint64_t> positions_;
  uint64_t every_up_to_ = 0;  // 0: the set has all that were added
};

}  // namespace longwire::worker
