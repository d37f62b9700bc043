// Looks for whole states of more memory than is copied: the second context compares the mirrors
// with shadows on the device (device_shadows.h), and what differs comes as blocks.
//
// It compares several times, and what was found goes into the shadows each time. Where the last
// time finds nothing, the shadows were equal to the memory in two comparisons, one after the other:
// these are two copies that are equal everywhere, and so a state (wire/live/changed_word.h).
// Whether the device let other kernels run in between makes no difference then. Kernels that write
// all the time are found at rest only within a turn, as long as what is compared fits in one.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "server/worker/memory/mirrors.h"
#include "server/worker/states/device_shadows.h"
#include "server/worker/states/state_turns.h"

namespace longwire::worker {

class ComparedLook {
 public:
  struct Part {
    std::shared_ptr<Mirror> mirror;
    uint64_t bytes = 0;
    uint64_t pulls = 0;  // of the mirror that were done before
  };
  explicit ComparedLook(std::vector<Part> parts);

  // As much is compared in some ten microseconds, of a turn of a millisecond or more: then one
  // comparison is one moment. Only tests change it, with the turns of the software device.
  static inline uint64_t bytes_in_a_turn = uint64_t{16} << 20;

  std::vector<std::shared_ptr<Mirror>> mirrors() const;
  const std::vector<Part>& parts() const { return parts_; }
  // Room for the tables, and for the entries of what is expected to have changed.
  uint64_t BufferBytes() const;

  // The following are the completion thread's, in this order, with the buffer.
  // Writes the tables, and what the shadows on the device do not have. If that is too much, it goes
  // in steps, and the last one compares.
  StateTurns::Comparison Fill(std::span<std::byte> buffer);
  // What has come: how many bytes of entries there are.
  enum class Found { kNothing, kEntries, kBroken };
  Found Read(std::span<const std::byte> buffer);
  uint64_t entries_bytes() const { return there_ * sizeof(BlockEntry); }
  uint64_t entries_at() const { return tables_; }
  // Calls each(mirror, offset, bytes) for all stretches of blocks that have changed, if they are a
  // state of the shadows as they are. False: they are not; *again: but will be, as the buffer then
  // is large enough.
  template <class Each>
  bool Take(std::span<const std::byte> buffer, bool* again, Each each) {
    const std::vector<BlockEntry> blocks = Blocks(buffer);
    if (!IsState(again)) {
      Forget(blocks);
      return false;
    }
    for (const Part& part : parts_) EachStretch(part, blocks, each);
    return true;
  }

  // Of the log thread's call.
  std::shared_ptr<void> claim;  // of the buffer
  StateTurns::Comparison work;
  std::atomic<bool> answered{false};  // by the completion thread, for the step that follows
  Found found = Found::kNothing;
  bool again = false;

 private:
  std::vector<BlockEntry> Blocks(std::span<const std::byte> buffer) const;
  bool IsState(bool* again);
  // The shadows on the device have them, and the others do not.
  void Forget(const std::vector<BlockEntry>& blocks);
  template <class Each>
  static void EachStretch(const Part& part, const std::vector<BlockEntry>& blocks, Each each);

  std::vector<Part> parts_;  // by address
  uint64_t tables_ = 0;      // bytes
  uint64_t tiles_ = 0, all_blocks_ = 0;
  uint64_t expected_;  // blocks
  uint64_t capacity_ = 0, there_ = 0, wanted_ = 0;
  bool converged_ = false;
};

// Blocks that follow each other come together.
template <class Each>
void ComparedLook::EachStretch(const Part& part, const std::vector<BlockEntry>& blocks, Each each) {
  const uint64_t begin = part.mirror->address, end = begin + part.bytes;
  auto block =
      std::ranges::lower_bound(blocks, begin - begin % kBlockBytes, {}, &BlockEntry::address);
  std::vector<std::byte> bytes;
  while (block != blocks.end() && block->address < end) {
    const uint64_t first = block->address;
    uint64_t next = first;
    bytes.clear();
    for (; block != blocks.end() && block->address == next && next < end; ++block) {
      bytes.insert(bytes.end(), block->bytes.begin(), block->bytes.end());
      next += kBlockBytes;
    }
    const uint64_t skipped = begin > first ? begin - first : 0;
    const uint64_t count = std::min(next, end) - first - skipped;
    each(*part.mirror, first + skipped - begin, std::span(bytes).subspan(skipped, count));
  }
}

}  // namespace longwire::worker
