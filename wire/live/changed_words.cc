#include "wire/live/changed_words.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "wire/live/changed_word.h"
#include "wire/page_delta.h"

namespace longwire::wire {
namespace {

constexpr uint64_t kWord = 8;

template <class Word>
void CopyWord(const std::byte* from, std::byte* to) {
  const Word word = __atomic_load_n(reinterpret_cast<const Word*>(from), __ATOMIC_RELAXED);
  std::memcpy(to, &word, sizeof(word));
}

// A copy of part of a page that somebody may write meanwhile: each aligned word by one load.
class PageCopy {
 public:
  std::span<const std::byte> Take(std::span<const std::byte> now) {
    const std::byte* from = now.data();
    for (size_t at = 0; at < now.size();) {
      size_t bytes = kWord;
      const auto place = reinterpret_cast<uint64_t>(from + at);
      while (place % bytes != 0 || at + bytes > now.size()) bytes /= 2;
      std::byte* to = bytes_.data() + at;
      switch (bytes) {
        case 8:
          CopyWord<uint64_t>(from + at, to);
          break;
        case 4:
          CopyWord<uint32_t>(from + at, to);
          break;
        case 2:
          CopyWord<uint16_t>(from + at, to);
          break;
        default:
          CopyWord<uint8_t>(from + at, to);
          break;
      }
      at += bytes;
    }
    return std::span(bytes_).first(now.size());
  }

 private:
  std::array<std::byte, kDeltaPageBytes> bytes_;
};

// What an unaligned end of a range has: at most 7 bytes.
void AppendSmallWords(std::span<const std::byte> now, std::byte* shadow, uint64_t offset,
                      uint64_t address, std::vector<std::byte>* delta) {
  for (size_t at = 0; at < now.size();) {
    uint32_t bytes = 4;
    while ((address + at) % bytes != 0 || at + bytes > now.size()) bytes /= 2;
    if (std::memcmp(now.data() + at, shadow + at, bytes) != 0) {
      ChangedWord word;
      word.offset = offset + at;
      word.bytes = bytes;
      std::copy_n(shadow + at, bytes, word.was.begin());
      std::copy_n(now.data() + at, bytes, word.is.begin());
      AppendWord(word, delta);
      std::copy_n(now.data() + at, bytes, shadow + at);
    }
    at += bytes;
  }
}

// Whole aligned words.
void AppendPage(std::span<const std::byte> now, std::byte* shadow, uint64_t offset,
                std::vector<std::byte>* delta) {
  std::array<std::byte, kDeltaPageBytes / kWord / 8> mask{};
  std::array<std::byte, 2 * kDeltaPageBytes> words;
  size_t filled = 0;
  for (size_t at = 0; at < now.size(); at += kWord) {
    if (std::memcmp(now.data() + at, shadow + at, kWord) == 0) continue;
    mask[at / kWord / 8] |= std::byte{1} << (at / kWord % 8);
    std::copy_n(shadow + at, kWord, words.data() + filled);
    std::copy_n(now.data() + at, kWord, words.data() + filled + kWord);
    std::copy_n(now.data() + at, kWord, shadow + at);
    filled += 2 * kWord;
  }
  if (filled == 0) return;
  AppendWordsHeader(offset, static_cast<uint32_t>(now.size()), delta);
  const size_t masked = (now.size() / kWord + 7) / 8;
  delta->insert(delta->end(), mask.begin(), mask.begin() + masked);
  delta->insert(delta->end(), words.begin(), words.begin() + filled);
}

}  // namespace

size_t AppendWords(std::span<const std::byte> now, std::byte* shadow, uint64_t offset,
                   uint64_t address, size_t most, std::vector<std::byte>* delta) {
  PageCopy copy;
  size_t at = 0;
  while (at < now.size() && delta->size() < most) {
    const uint64_t here = address + at;
    const size_t bytes =
        std::min<size_t>(kDeltaPageBytes - here % kDeltaPageBytes, now.size() - at);
    const std::span<const std::byte> page = copy.Take(now.subspan(at, bytes));
    if (std::memcmp(page.data(), shadow + at, bytes) != 0) {
      const size_t head = std::min<size_t>((kWord - here % kWord) % kWord, bytes);
      const size_t whole = (bytes - head) / kWord * kWord;
      AppendSmallWords(page.first(head), shadow + at, offset + at, here, delta);
      AppendPage(page.subspan(head, whole), shadow + at + head, offset + at + head, delta);
      const size_t end = head + whole;
      AppendSmallWords(page.subspan(end), shadow + at + end, offset + at + end, here + end, delta);
    }
    at += bytes;
  }
  return at;
}

StoredPart PartToStore(std::span<const std::byte> was, std::span<const std::byte> is) {
  if (is.size() != kWord) return {0, is.size()};
  const bool low = std::memcmp(was.data(), is.data(), 4) != 0;
  const bool high = std::memcmp(was.data() + 4, is.data() + 4, 4) != 0;
  if (low == high) return {0, kWord};
  return {low ? size_t{0} : size_t{4}, 4};
}

}  // namespace longwire::wire
