#include "client-shim/session/stream_ends.h"

namespace longwire::shim {

void StreamEnds::Add(uint64_t stream, uint64_t position, const Ending& ending) {
  base::MutexLock lock(mutex_);
  by_place_.emplace(std::pair(stream, position), ending);
  count_.store(by_place_.size());
}

std::vector<Ending> StreamEnds::Take(uint64_t stream, uint64_t position) {
  std::vector<Ending> endings;
  // Pairs with EndsWith, which adds and then reads how far the stream is.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (count_.load() == 0) return endings;
  base::MutexLock lock(mutex_);
  auto begin = by_place_.lower_bound({stream, 0});
  auto end = by_place_.upper_bound({stream, position});
  for (auto entry = begin; entry != end; ++entry) endings.push_back(entry->second);
  by_place_.erase(begin, end);
  count_.store(by_place_.size());
  return endings;
}

}  // namespace longwire::shim
