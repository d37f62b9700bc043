// The bytes of a mirrored range that changed since the other end last received them. Each end keeps
// a shadow: the bytes that the other end has, as far as this end knows.
//
// A delta is a list of pages with changes. Each: u64 offset in the range, u32 bytes of the page,
// u32 form; then, by form, all of the page's bytes (whole), or one bit for each of its bytes and
// behind them the bytes whose bits are set (masked, checked), or nothing (conflict). Instead of a
// page, a word of 1, 2, 4 or 8 bytes: what the sender's shadow had there, and what is there now. Or
// words: one bit for each word of 8 bytes of the page, and those two for each whose bit is set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/memory_sizes.h"
#include "wire/live/changed_word.h"
#include "wire/result.h"

namespace longwire::wire {

inline constexpr size_t kDeltaPageBytes = base::kPageBytes;
// The most that one page takes in a delta: as words header, mask, and what each word was and is; at
// the two ends of a range that is not aligned, three smaller words.
inline constexpr size_t kMaxDeltaOfPage =
    16 + kDeltaPageBytes / 64 + 2 * kDeltaPageBytes + 2 * 3 * (16 + 2 * 4);

// Whole: unchanged bytes of a changed page may be sent, too; only correct if the other end cannot
// have changed them meanwhile. Checked: as masked, and the other end replies with a conflict if it
// has changed one of the bytes to another value. Word: all that has changed anywhere, aligned and
// to be stored at once, as somebody looks at it meanwhile; checked as well. Words: each of them as
// a word, independent of the others; read as words.
enum class PageForm : uint32_t {
  kMasked = 0,
  kWhole = 1,
  kChecked = 2,
  kConflict = 3,
  kWord = 4,
  kWords = 5
};

// Compares `now` with `shadow` (as long), appends the pages that differ to `delta` and makes the
// shadow equal. `now` may change meanwhile: the bytes that the shadow then holds are sent. Stops
// early when the delta has `most` bytes or more; returns the number of bytes compared. `now` begins
// at `offset` of the range.
size_t AppendDelta(std::span<const std::byte> now, std::byte* shadow, uint64_t offset,
                   PageForm form, size_t most, std::vector<std::byte>* delta);

// A run of changed bytes; none in a conflict, which is about the byte at the offset.
struct DeltaRun {
  uint64_t offset = 0;
  std::span<const std::byte> bytes;
  PageForm form = PageForm::kMasked;
  std::span<const std::byte> was = {};  // of a word: as many bytes
};

// A delta of one word.
void AppendWord(const ChangedWord& word, std::vector<std::byte>* delta);

// The header of a page of words, in which mask and words follow (wire/live/changed_words.h).
void AppendWordsHeader(uint64_t offset, uint32_t bytes, std::vector<std::byte>* delta);

// A delta that reports that both ends have changed the byte at `offset`.
void AppendConflict(uint64_t offset, std::vector<std::byte>* delta);

// Lists the runs of a delta for a range of `range_bytes` bytes; they point into `delta`. kFatal if
// it is malformed or leaves the range.
WireResult ReadDelta(std::span<const std::byte> delta, uint64_t range_bytes,
                     std::vector<DeltaRun>* runs);

}  // namespace longwire::wire
