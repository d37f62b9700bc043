// Copies of what the program shares with kernels, and the one word in which it differs from the
// shadow, if it differs nowhere else (wire/live/changed_word.h).
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <span>
#include <vector>

#include "client-shim/mirror/look_choice.h"
#include "wire/live/changed_word.h"

namespace longwire::shim {

// A copy of some parts of mirrors. Each range begins as far from a cache line's begin as the memory
// itself, so that a copy takes no aligned word in two parts.
class ProgramCopy {
 public:
  // False if not all could be read.
  bool Make(std::span<const MirrorPart> parts);
  // In the parts' order; until the next copy.
  std::span<const wire::ComparedRange> ranges() const { return ranges_; }

 private:
  std::vector<std::byte> bytes_;
  std::vector<iovec> from_, to_;
  std::vector<wire::ComparedRange> ranges_;
};

// The parts in batches that are copied one at a time; no word lies in two.
std::vector<std::vector<MirrorPart>> BatchesOf(std::span<const MirrorPart> parts);

// Looks through any amount of memory, a few MiB at a time.
class OneWord {
 public:
  // kMore: other words have changed, or a word beside that one meanwhile.
  enum class Found { kNone, kWord, kMore, kUnreadable };
  // kWord: *mirror and *word, whose offset is in the mirror. All of the first copy is made before
  // the second one begins.
  Found Find(std::span<const MirrorPart> parts, Mirror** mirror, wire::ChangedWord* word);

 private:
  using Batch = std::vector<MirrorPart>;

  Found FindFirst(std::span<const Batch> batches, size_t* batch, wire::ChangedWord* word);

  ProgramCopy first_, second_;
};

}  // namespace longwire::shim
