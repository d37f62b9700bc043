// A state of what the program shares with kernels, as changes since the shadows were made: what the
// memory had at one moment, or what it may have had at one for whoever reads it.
//
// Let two copies be made, the second one after the first was complete, and let them be the same.
// Then every word had its value before the first copy was complete and after that. Let x be written
// before y. If the first copy has y's new value, x was new before the second copy began, which
// therefore has the new one, or one that is newer; and so does the first, as they are the same. So
// whoever sees a word of it sees what was written before it. Where one word differs, that is not
// so: the copy with the older word may have been made before it was written, and what was written
// after it came before the copy reached that.
//
// What is written without a pause gives no two copies that are the same. Then one is made while the
// pages are held (held_pages.h).
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "client-shim/mirror/held_pages.h"
#include "client-shim/mirror/look_choice.h"
#include "client-shim/mirror/mirrors.h"
#include "client-shim/mirror/one_word.h"
#include "client-shim/support/private_memory.h"

namespace longwire::shim {

// Changes of one mirror, in the form that finds conflicts (wire/page_delta.h).
struct StateDelta {
  Mirror* mirror = nullptr;
  std::vector<std::byte> delta;
  bool operator==(const StateDelta&) const = default;
};

class ProgramState {
 public:
  enum class Taken { kSame, kState, kNotNow, kUnreadable };
  // The shadows stay as they are. kSame: nothing has changed. kNotNow: the program writes without a
  // pause, and pages cannot be held, or more has changed than a state may have.
  Taken Take(std::span<const MirrorPart> parts);
  // What was taken, in order; there is at least one.
  std::span<const StateDelta> deltas() const { return deltas_; }
  // It was sent: the shadows have it now.
  void Commit();

 private:
  enum class Copied { kYes, kTooMuch, kUnreadable };

  Copied CopyAll(std::span<const MirrorPart> parts, std::vector<StateDelta>* deltas);
  bool CopyHeld(std::span<const MirrorPart> parts);

  std::vector<StateDelta> deltas_;
  ProgramCopy copy_;
  PrivateMemory held_;
};

// Allocated memory may lie in the segment that the worker has, too, which only copies use there.
inline bool MayBeShared(const MirrorRange& range) { return !range.may_vanish; }

// The pages of the parts.
std::vector<PageRange> RangesOf(std::span<const MirrorPart> parts);

}  // namespace longwire::shim
