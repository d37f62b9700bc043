// Which bytes of a transfer have come. Each comes once; pieces come in any order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>

namespace longwire::shim {

class Coverage {
 public:
  // Stretches with gaps between them: far more than pieces that are on their way in all lanes.
  static constexpr size_t kMaxStretches = size_t{1} << 16;

  // The bytes come now. False if any of them came before, or if they make too many stretches.
  // offset + bytes does not overflow.
  bool Take(uint64_t offset, uint64_t bytes) {
    if (bytes == 0) return true;
    if (offset == first_ && stretches_.empty()) {  // mostly they come in order
      first_ += bytes;
      return true;
    }
    if (offset < first_) return false;
    uint64_t end = offset + bytes;
    auto next = stretches_.lower_bound(offset);
    if (next != stretches_.end() && next->first < end) return false;
    auto before = next == stretches_.begin() ? stretches_.end() : std::prev(next);
    if (before != stretches_.end() && before->second > offset) return false;
    if (next != stretches_.end() && next->first == end) {
      end = next->second;
      next = stretches_.erase(next);
    }
    if (before != stretches_.end() && before->second == offset) {
      before->second = end;
    } else {
      before = stretches_.emplace_hint(next, offset, end);
    }
    if (before->first == first_) {
      first_ = before->second;
      stretches_.erase(before);
    }
    return stretches_.size() <= kMaxStretches;
  }

 private:
  uint64_t first_ = 0;                      // all bytes before it have come
  std::map<uint64_t, uint64_t> stretches_;  // behind it: from, to
};

}  // namespace longwire::shim
