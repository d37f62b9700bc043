// Slots (wire/lane.h) for large copies up on the worker's host: a part of the segment that the
// worker has, too (pinned_segment.h). A piece of such a copy is copied into a slot, and the device
// reads it there; without slots it would be copied into a ring and out of it again.
//
// Nobody waits for a slot: copies behind a stream that waits for long may hold them all, and the
// pieces of others take the rings then. Off with LONGWIRE_DISABLE=staged-copies.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

namespace longwire::shim {

class Slots {
 public:
  // Before a copy is cut into pieces: whether there are slots. The first copy that is worth it
  // begins to make them, and takes the rings itself: nobody waits until they are pinned.
  bool Open(uint64_t copy_bytes);

  struct Slot {
    std::byte* data = nullptr;
    uint64_t offset = 0;  // in the segment
  };
  // False if none is free.
  bool Take(Slot* slot);
  // What the worker says. False if it is none that was taken.
  bool Give(uint64_t offset);

 private:
  void Make();

  std::atomic<bool> tried_{false}, open_{false};
  std::byte* data_ = nullptr;
  uint64_t part_ = 0;  // where it begins in the segment
  std::mutex mutex_;
  std::vector<uint32_t> free_;  // the newest, which may still be in the caches, is taken first
  std::vector<bool> taken_;
};

}  // namespace longwire::shim
