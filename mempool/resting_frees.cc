#include "mempool/resting_frees.h"

namespace longwire::mempool {

void RestingFrees::Add(const Range& range, std::vector<Mark> marks, Freed freed) {
  Rests::iterator rest = rests_.insert(rests_.end(), {range, std::move(marks), {}, same_.end()});
  const Mark& last = rest->marks.back();
  rest->waiting = waiting_.insert({{last.stream, last.position}, rest});
  void* of = freed == Freed::kForAll ? nullptr : last.stream;
  if (rest->marks.size() == 1) rest->same = same_.insert({{of, range.bytes}, rest});
  bytes_ += range.bytes;
}

void RestingFrees::Forget(Rests::iterator rest) {
  if (rest->same != same_.end()) same_.erase(rest->same);
  waiting_.erase(rest->waiting);
  bytes_ -= rest->range.bytes;
  rests_.erase(rest);
}

std::vector<Range> RestingFrees::Collect() {
  std::vector<Range> over;
  for (auto next = waiting_.begin(); next != waiting_.end();) {
    auto [stream, position] = next->first;
    if (!device_.Passed({stream, position})) {
      next = waiting_.upper_bound({stream, UINT64_MAX});
      continue;
    }
    Rests::iterator rest = next->second;
    ++next;
    device_.Drop(rest->marks.back());
    rest->marks.pop_back();
    if (rest->marks.empty()) {
      over.push_back(rest->range);
      Forget(rest);
      continue;
    }
    const Mark& mark = rest->marks.back();
    waiting_.erase(rest->waiting);
    rest->waiting = waiting_.insert({{mark.stream, mark.position}, rest});
    // It may stand before the place of this walk.
    if (mark.stream <= stream) next = waiting_.lower_bound({mark.stream, 0});
  }
  return over;
}

void RestingFrees::Take(Rests::iterator rest, uint64_t* address) {
  *address = rest->range.address;
  device_.Drop(rest->marks.back());
  Forget(rest);
}

bool RestingFrees::TakeSame(uint64_t bytes, void* stream, uint64_t* address) {
  auto found = same_.find({stream, bytes});
  if (found == same_.end()) {
    found = same_.find({nullptr, bytes});
    if (found == same_.end() || found->second->marks.back().stream != stream) return false;
  }
  Take(found->second, address);
  return true;
}

bool RestingFrees::TakeBehind(uint64_t bytes, uint64_t* address) {
  auto found = same_.find({nullptr, bytes});
  if (found == same_.end() || !device_.PutAllBehind(found->second->marks.back())) return false;
  Take(found->second, address);
  return true;
}

std::vector<Mark> RestingFrees::OldestMarks() const {
  return rests_.empty() ? std::vector<Mark>() : rests_.front().marks;
}

std::vector<Range> RestingFrees::All() const {
  std::vector<Range> all;
  for (const Rest& rest : rests_) all.push_back(rest.range);
  return all;
}

}  // namespace longwire::mempool
