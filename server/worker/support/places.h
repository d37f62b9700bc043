// Places of the log that somebody asked for, ascending. Of very many only the first are kept; then
// every place counts up to the newest, so that nobody who asked is left out.
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
    if (at != positions_.end() && *at == position) return;
    if (positions_.size() == kMost) {
      every_up_to_ = std::max(every_up_to_, position);
    } else {
      positions_.insert(at, position);
    }
  }
  bool AnyUpTo(uint64_t position) const {
    return every_up_to_ != 0 || (!positions_.empty() && positions_.front() <= position);
  }
  // Takes those out. False if there are none.
  bool Reach(uint64_t position) {
    bool any = AnyUpTo(position);
    while (!positions_.empty() && positions_.front() <= position) positions_.pop_front();
    if (position >= every_up_to_) every_up_to_ = 0;
    return any;
  }

 private:
  std::deque<uint64_t> positions_;
  uint64_t every_up_to_ = 0;  // 0: all that were asked for are kept
};

}  // namespace longwire::worker
