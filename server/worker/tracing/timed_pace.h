// Which of a session's launches are timed, beyond each kernel's first ones: one in about a
// thousand, and fewer where that would be more than a hundred a second. A timed launch costs two
// events and the graph of launches that it cuts in two, together as much as some ten launches.
#pragma once

#include <algorithm>
#include <cstdint>

namespace longwire::worker {

class TimedPace {
 public:
  static constexpr uint64_t kEvery = 1024;
  static constexpr uint64_t kApart = 10'000'000;  // ns between two timed launches

  // One was timed now (ns of any clock that goes forward): how many launches of its kernel there
  // are until the next. Not regular, for programs are.
  uint64_t Distance(uint64_t now) {
    const bool too_soon = now - last_ < kApart;
    sparseness_ =
        too_soon ? std::min(sparseness_ * 2, kSparsest) : std::max(sparseness_ / 2, uint64_t{1});
    last_ = now;
    random_ ^= random_ << 13;
    random_ ^= random_ >> 7;
    random_ ^= random_ << 17;
    return sparseness_ * (kEvery / 2 + random_ % kEvery);
  }

 private:
  static constexpr uint64_t kSparsest = 256;
  uint64_t last_ = 0;
  uint64_t sparseness_ = 1;
  uint64_t random_ = 0x9e3779b97f4a7c15;
};

}  // namespace longwire::worker
