// Where every aligned word of 8 bytes counts for itself (LONGWIRE_LIVE_WORDS=independent): all
// words in which memory differs from a shadow, as a delta of words (wire/page_delta.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace longwire::wire {

// Compares `now` with `shadow` (as long), appends each word that differs to `delta` and makes the
// shadow equal. Others may write `now` meanwhile: each word is read once, and the words in
// ascending order of pages. Stops early when the delta has `most` bytes or more; returns the number
// of bytes compared. `now` begins at `offset` of a range; words are aligned as `address` of its
// first byte says, where they are stored. An aligned word that the range has only in part is taken
// as words of 4, 2 and 1 bytes.
size_t AppendWords(std::span<const std::byte> now, std::byte* shadow, uint64_t offset,
                   uint64_t address, size_t most, std::vector<std::byte>* delta);

// The part of a changed word that is to be stored: one half of 8 bytes where the other has not
// changed, since that may be somebody else's.
struct StoredPart {
  size_t begin = 0, bytes = 0;
};
StoredPart PartToStore(std::span<const std::byte> was, std::span<const std::byte> is);

}  // namespace longwire::wire
