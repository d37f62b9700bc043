// A state that the program has sent and that is not in the device's memory yet: what it changed in
// several mirrors, as words of 8 bytes. It comes in parts, and becomes visible as a whole, or at
// the next border of work (wire/live/mirror_state.h).
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "server/worker/memory/mirrors.h"
#include "server/worker/support/host_memory.h"
#include "wire/page_delta.h"

namespace longwire::worker {

// Bytes whose bits are not set in the mask count for nothing.
struct StoredWord {
  static constexpr uint64_t kAddressBits = 56;

  uint64_t place = 0;  // the aligned address, and above it a bit for each changed byte
  std::array<std::byte, 8> now = {};

  uint64_t address() const { return place & ((uint64_t{1} << kAddressBits) - 1); }
  uint8_t mask() const { return static_cast<uint8_t>(place >> kAddressBits); }
};
static_assert(sizeof(StoredWord) == 16);

// The changed words of 64 bytes, as the kernel reads them (state_kernels.h). `was` is what the
// shadow has, and so is `now` where a byte has not changed.
struct StoredBlock {
  static constexpr uint64_t kBytes = 64;
  static constexpr uint64_t kFull = 1;  // in `place`: each of its words has changed

  uint64_t place = 0;  // the address
  uint64_t mask = 0;   // a bit for each changed byte
  std::array<std::byte, kBytes> was = {}, now = {};
};
static_assert(sizeof(StoredBlock) == 144);

class WholeState {
 public:
  // What was pushed of one mirror.
  struct Group {
    std::shared_ptr<Mirror> mirror;
    std::vector<StoredWord> words;  // ascending after Merge
    uint64_t pushes = 0;            // counted as queued in the mirror
    bool checked = false;           // one of them asks for conflicts
    size_t stored = 0;              // words, at a border
  };

  explicit WholeState(HostMemory& host_memory) : share_(host_memory, HostUse::kMirrors) {}

  // False if there is no memory: nothing is added.
  bool Add(const std::shared_ptr<Mirror>& mirror, const std::vector<wire::DeltaRun>& runs,
           uint64_t delta_bytes);
  // Of a word that was pushed several times the newest bytes stay.
  void Merge();
  // What the shadows have: makes the blocks. Completion thread, as the next two.
  void ReadShadows();
  // Whether there are blocks: else it is more than a kernel stores in a turn, or there is no
  // memory for them. After has_shadows.
  bool fits() const { return fits_; }
  void UpdateShadows();
  void CountDone();
  // A mirror that ends: nobody looks at it any more.
  void Drop(const Mirror& mirror);

  std::span<const StoredBlock> blocks() const { return blocks_; }
  std::vector<Group>& groups() { return groups_; }
  // Bytes of the deltas since the last state was complete.
  uint64_t delta_bytes = 0;
  std::atomic<bool> has_shadows{false};

 private:
  void AddBlock(const Mirror& mirror, std::span<const StoredWord> words);

  std::vector<Group> groups_;
  std::vector<StoredBlock> blocks_;
  bool fits_ = false;
  HostMemory::Share share_;
};

}  // namespace longwire::worker
