#include "wire/live/changed_word.h"

#include <algorithm>
#include <cstring>

#include "base/memory_sizes.h"
#include "wire/guards.h"

namespace longwire::wire {
namespace {

constexpr uint64_t kWord = 8;

// The bytes that differ, as the offsets of the first and the last one in their range.
struct Extent {
  size_t range = 0;
  uint64_t first = 0, last = 0;
  bool any = false;
};

uint64_t WordOf(const ComparedRange& range, uint64_t offset) {
  return (range.address + offset) / kWord;
}

// False: they lie in more than one word.
bool Take(std::span<const ComparedRange> ranges, size_t range, uint64_t offset, Extent* extent) {
  if (!extent->any) {
    *extent = {range, offset, offset, true};
    return true;
  }
  static const bool one_word = !GuardIsOff("one_word");
  const bool same = extent->range == range &&
                    WordOf(ranges[range], extent->first) == WordOf(ranges[range], offset);
  if (!same && !one_word) *extent = {range, offset, offset, true};
  extent->last = offset;
  return same || !one_word;
}

bool Compare(std::span<const ComparedRange> ranges, size_t index, Extent* extent) {
  constexpr uint64_t kStep = base::kPageBytes;
  const ComparedRange& range = ranges[index];
  const uint64_t bytes = range.now.size();
  for (uint64_t at = 0; at < bytes; at += kStep) {
    const uint64_t end = std::min(at + kStep, bytes);
    if (std::memcmp(range.now.data() + at, range.shadow + at, end - at) == 0) continue;
    for (uint64_t i = at; i < end; ++i) {
      if (range.now[i] != range.shadow[i] && !Take(ranges, index, i, extent)) return false;
    }
  }
  return true;
}

bool CompareAll(std::span<const ComparedRange> ranges, Extent* extent) {
  for (size_t i = 0; i < ranges.size(); ++i) {
    if (!Compare(ranges, i, extent)) return false;
  }
  return true;
}

template <class Word>
bool Store(void* place, const std::byte* was, const std::byte* is) {
  auto* word = static_cast<Word*>(place);
  Word now = __atomic_load_n(word, __ATOMIC_RELAXED);
  while (true) {
    std::array<std::byte, sizeof(Word)> bytes;
    std::memcpy(bytes.data(), &now, sizeof(Word));
    for (size_t i = 0; i < sizeof(Word); ++i) {
      if (was[i] == is[i]) continue;
      if (bytes[i] != was[i] && bytes[i] != is[i]) return false;
      bytes[i] = is[i];
    }
    Word next;
    std::memcpy(&next, bytes.data(), sizeof(Word));
    if (__atomic_compare_exchange_n(word, &now, next, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) {
      return true;
    }
  }
}

}  // namespace

Difference FindDifference(std::span<const ComparedRange> ranges, ChangedWord* word) {
  Extent extent;
  if (!CompareAll(ranges, &extent)) return Difference::kMore;
  if (!extent.any) return Difference::kNone;
  const ComparedRange& range = ranges[extent.range];
  const uint64_t first = range.address + extent.first, last = range.address + extent.last;
  uint64_t bytes = 1;
  while (first / bytes != last / bytes) bytes *= 2;
  const uint64_t start = first / bytes * bytes;
  // A word that the range has only in part is not ours to store.
  if (start < range.address || start + bytes > range.address + range.now.size()) {
    return Difference::kMore;
  }
  word->range = extent.range;
  word->offset = start - range.address;
  word->bytes = static_cast<uint32_t>(bytes);
  std::copy_n(range.shadow + word->offset, bytes, word->was.begin());
  std::copy_n(range.now.data() + word->offset, bytes, word->is.begin());
  return Difference::kWord;
}

bool Confirms(std::span<const ComparedRange> later, const ChangedWord& word) {
  static const bool looks_again = !GuardIsOff("second_look");
  Extent extent;
  if (!looks_again) return true;
  if (!CompareAll(later, &extent)) return false;
  return !extent.any || (extent.range == word.range && WordOf(later[word.range], extent.first) ==
                                                           WordOf(later[word.range], word.offset));
}

bool StoreWord(void* place, uint32_t bytes, const std::byte* was, const std::byte* is) {
  switch (bytes) {
    case 1:
      return Store<uint8_t>(place, was, is);
    case 2:
      return Store<uint16_t>(place, was, is);
    case 4:
      return Store<uint32_t>(place, was, is);
    default:
      return Store<uint64_t>(place, was, is);
  }
}

}  // namespace longwire::wire
