// Slots (wire/lane.h) for large uploads on the worker's host: parts of the segment that program and
// worker share (pinned_segment.h). A piece of a copy is copied into a slot, where the device reads
// it. Without slots it would be copied into a ring and out of it again.
//
// If all slots are in use, a sender waits as long as some are returned (lanes.cc). Copies of a
// stream that is blocked may hold all slots for long; pieces of other copies then go through the
// rings. Off with LONGWIRE_DISABLE=staged-copies.
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
  // Called before a copy is cut into pieces. True if slots exist. The first copy that is large
  // enough starts to create them, and uses the rings itself if that takes too long for its size.
  bool Open(uint64_t copy_bytes) LONGWIRE_EXCLUDES(mutex_);

  struct Slot {
    std::byte* data = nullptr;
    uint64_t offset = 0;  // in the segment
  };
  // False if none is free.
  bool Take(Slot* slot);
  // The worker returns the slot at this offset. False if it was not taken.
  bool Give(uint64_t offset);
  // The number of slots returned until now.
  uint64_t given() const { return given_.load(std::memory_order_acquire); }

 private:
  void Make();
  bool Pin();

  std::atomic<bool> tried_{false}, open_{false};
  std::byte* data_ = nullptr;
  uint64_t part_ = 0;  // offset of the slots' part in the segment
  std::atomic<uint64_t> given_{0};
  base::Mutex mutex_{base::ranks::kSlots};
  bool made_ LONGWIRE_GUARDED_BY(mutex_) = false;  // slots were created, or that failed
  base::CondVar made_changed_;
  // The slot that was returned last is taken first: it may still be in the caches.
  std::vector<uint32_t> free_ LONGWIRE_GUARDED_BY(mutex_);
  std::vector<bool> taken_ LONGWIRE_GUARDED_BY(mutex_);
};

}  // namespace longwire::shim
