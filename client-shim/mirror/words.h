// LONGWIRE_LIVE_WORDS=independent: the user says that every aligned word of 8 bytes in memory that
// kernels reach counts for itself, as flags, counters and NCCL's LL lines do. Then all words that
// have changed are exchanged while work runs, each of them stored at once, and at borders as well
// wherever somebody may look at them (docs/host-memory.md#independent-words).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "client-shim/mirror/mirror_table.h"

namespace longwire::shim {

// Whether the mirror's words are exchanged so: the user says so, and the server can do it.
bool AreIndependent(const Channel& channel);

// Sends all words in which `now`, the mirror's bytes from `offset` on, differs from the shadow;
// true if any does. Words at higher addresses are stored on the device before those at lower ones.
bool SendWords(Mirrors& mirrors, Mirror& mirror, uint64_t offset, std::span<const std::byte> now)
    LONGWIRE_REQUIRES(mirrors.mutex);

// Whether words may be stored; each page is asked about once.
class WritablePages {
 public:
  bool MayWrite(uint64_t address);
  // Only memory in files is asked about.
  bool MayWrite(const Mirror& mirror, uint64_t address);

 private:
  uint64_t page_ = UINT64_MAX;
  bool may_ = false;
};

// Stores what a border brings from the device, masked runs in ascending order: all changed bytes of
// a word at once. Where the program has changed them as well, the device's values stay.
void StoreRuns(Mirror& mirror, std::span<const wire::DeltaRun> runs);

}  // namespace longwire::shim
