// Places of the log that somebody asked for, ascending. Of very many only some are kept, the newest
// always: who asked for another one hears of it with the next.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>

namespace longwire::worker {

class Places {
 public:
  static constexpr size_t kMost = 64;

  void Add(uint64_t position) {
    auto at = std::lower_bound(positions_.begin(), positions_.end(), position);
    if (at != positions_.end() && (positions_.size() == kMost || *at == position)) return;
    if (positions_.size() == kMost) {
      positions_.back() = position;
    } else {
      positions_.insert(at, position);
    }
  }
  bool AnyUpTo(uint64_t position) const {
    return !positions_.empty() && positions_.front() <= position;
  }
  // Takes those out. False if there are none.
  bool Reach(uint64_t position) {
    bool any = AnyUpTo(position);
    while (AnyUpTo(position)) positions_.pop_front();
    return any;
  }

 private:
  std::deque<uint64_t> positions_;
};

}  // namespace longwire::worker
