// Slots (wire/lane.h) for large copies up on the worker's host: a part of the segment that the
// worker has, too (pinned_segment.h). A piece of such a copy is copied into a slot, and the device
// reads it there; without slots it would be copied into a ring and out of it again.
//
// While they come back a slot is waited for (lanes.cc). But copies behind a stream that waits for
// long may hold them all, and the pieces of others take the rings then. Off with
// LONGWIRE_DISABLE=staged-copies.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/lock_ranks.h"
#include "base/mutex.h"

namespace longwire::shim {

class Slots {
 public:
  // Before a copy is cut into pieces: whether there are slots. The first copy that is worth it
  // begins to make them, and takes the rings itself if that takes longer than its size is worth.
  bool Open(uint64_t copy_bytes) LONGWIRE_EXCLUDES(mutex_);

  struct Slot {
    std::byte* data = nullptr;
    uint64_t offset = 0;  // in the segment
  };
  // False if none is free.
  bool Take(Slot* slot);
  // What the worker says. False if it is none that was taken.
  bool Give(uint64_t offset);
  // How many were given back until now.
  uint64_t given() const { return given_.load(std::memory_order_acquire); }

 private:
  void Make();
  bool Pin();

  std::atomic<bool> tried_{false}, open_{false};
  std::byte* data_ = nullptr;
  uint64_t part_ = 0;  // where it begins in the segment
  std::atomic<uint64_t> given_{0};
  base::Mutex mutex_{base::ranks::kSlots};
  bool made_ LONGWIRE_GUARDED_BY(mutex_) = false;  // or it cannot be done
  base::CondVar made_changed_;
  // The newest, which may still be in the caches, is taken first.
  std::vector<uint32_t> free_ LONGWIRE_GUARDED_BY(mutex_);
  std::vector<bool> taken_ LONGWIRE_GUARDED_BY(mutex_);
};

}  // namespace longwire::shim
