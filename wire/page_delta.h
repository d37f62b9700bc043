// The bytes of a mirrored range that changed since the other end last received them. Each end keeps
// a shadow: the bytes that the other end has, as far as this end knows.
//
// A delta is a list of pages with changes. Each: u64 offset in the range, u32 bytes of the page,
// u32 form; then, by form, all of the page's bytes (whole), or one bit for each of its bytes and
// behind them the bytes whose bits are set (masked, checked), or nothing (conflict). Instead of a
// page, a word of 1, 2, 4 or 8 bytes: what the sender's shadow had there, and what is there now. Or
// words: one bit for each word of 8 bytes of the page, and those two for each whose bit is set.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
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
  // Of a page as a whole (MaskedAs::kPages): one bit for each of its bytes, of which `bytes` has
  // those whose bits are set. Bits beyond the page are 0.
  std::span<const std::byte> mask = {};
};

// A delta of one word.
void AppendWord(const ChangedWord& word, std::vector<std::byte>* delta);

// The header of a page of words, in which mask and words follow (wire/live/changed_words.h).
void AppendWordsHeader(uint64_t offset, uint32_t bytes, std::vector<std::byte>* delta);

// A delta that reports that both ends have changed the byte at `offset`.
void AppendConflict(uint64_t offset, std::vector<std::byte>* delta);

// Numbers of four bytes often change in three of them, so a masked page may have a thousand runs.
// Who can apply pages as they are gets each as one run with a mask.
enum class MaskedAs { kRuns, kPages };

// Lists the runs of a delta for a range of `range_bytes` bytes; they point into `delta`. kFatal if
// it is malformed or leaves the range.
WireResult ReadDelta(std::span<const std::byte> delta, uint64_t range_bytes,
                     std::vector<DeltaRun>* runs, MaskedAs masked = MaskedAs::kRuns);

// Eight bytes of a masked page. `bit` set: the byte of `value` is the changed one.
struct MaskedWord {
  uint64_t at = 0;  // of its first byte in the page
  uint8_t bits = 0;
  std::array<std::byte, 8> value = {};
};

// Calls `each(MaskedWord)` for each eight bytes of the page in which a bit is set, in order.
template <class Each>
void EachMaskedWord(const DeltaRun& page, Each each) {
  const std::byte* next = page.bytes.data();
  for (size_t i = 0; i < page.mask.size(); ++i) {
    MaskedWord word{8 * i, std::to_integer<uint8_t>(page.mask[i])};
    if (word.bits == 0) continue;
    if (word.bits == 0xff) {
      std::memcpy(word.value.data(), next, 8);
      next += 8;
    } else {
      for (uint8_t left = word.bits; left != 0; left &= left - 1) {
        word.value[static_cast<size_t>(std::countr_zero(left))] = *next++;
      }
    }
    each(word);
  }
}

}  // namespace longwire::wire
