#include "wire/page_delta.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "wire/buffer.h"
#include "wire/guards.h"

namespace longwire::wire {
namespace {

struct PageHeader {
  uint64_t offset;
  uint32_t bytes;
  uint32_t form;
};
static_assert(sizeof(PageHeader) == 16);

using Page = std::array<std::byte, kDeltaPageBytes>;

void Append(std::span<const std::byte> bytes, std::vector<std::byte>* to) {
  to->insert(to->end(), bytes.begin(), bytes.end());
}

uint64_t Load(const std::byte* bytes) {
  uint64_t word = 0;
  std::memcpy(&word, bytes, sizeof(word));
  return word;
}

// Bit i: byte i of the word is not 0. (The first byte is the lowest, as on all that Longwire runs
// on.)
uint8_t BytesSet(uint64_t word) {
  constexpr uint64_t kLow = 0x7f7f7f7f7f7f7f7f;
  const uint64_t tops = (((word & kLow) + kLow) | word) & ~kLow;
  return static_cast<uint8_t>(((tops >> 7) * 0x0102040810204080) >> 56);
}

// One bit for each byte that differs; words that are equal cost one comparison.
void AppendMasked(std::span<const std::byte> page, const std::byte* shadow,
                  std::vector<std::byte>* delta) {
  std::array<std::byte, kDeltaPageBytes / 8> mask{};
  std::array<std::byte, kDeltaPageBytes + 8> changed;  // a word's bytes may be written beyond it
  size_t count = 0, at = 0;
  for (; at + 8 <= page.size(); at += 8) {
    const uint8_t bits = BytesSet(Load(page.data() + at) ^ Load(shadow + at));
    if (bits == 0) continue;
    mask[at / 8] = std::byte{bits};
    if (bits == 0xff) {
      std::memcpy(&changed[count], page.data() + at, 8);
      count += 8;
      continue;
    }
    for (size_t i = 0; i < 8; ++i) {  // without a branch for each
      changed[count] = page[at + i];
      count += bits >> i & 1;
    }
  }
  for (; at < page.size(); ++at) {
    if (page[at] == shadow[at]) continue;
    mask[at / 8] |= std::byte{1} << at % 8;
    changed[count++] = page[at];
  }
  Append(std::span(mask).first((page.size() + 7) / 8), delta);
  Append(std::span(changed).first(count), delta);
}

// 64 bits of a mask, of which those beyond `bytes` bytes are 0.
uint64_t MaskAt(std::span<const std::byte> mask, size_t word, size_t bytes) {
  std::array<std::byte, 8> some{};
  const auto there = mask.subspan(8 * word, std::min<size_t>(8, mask.size() - 8 * word));
  std::copy(there.begin(), there.end(), some.begin());
  const size_t left = bytes - 64 * word;
  return Load(some.data()) & (left < 64 ? (uint64_t{1} << left) - 1 : ~uint64_t{0});
}

// The runs of set bits, or the page.
WireResult ReadMasked(const PageHeader& header, Reader& reader, std::vector<DeltaRun>* runs,
                      MaskedAs masked) {
  std::span<const std::byte> mask, bytes;
  LW_TRY(reader.View((header.bytes + 7) / 8, &mask));
  const size_t words = (mask.size() + 7) / 8;
  size_t count = 0;
  for (size_t i = 0; i < words; ++i) {
    count += static_cast<size_t>(std::popcount(MaskAt(mask, i, header.bytes)));
  }
  LW_TRY(reader.View(count, &bytes));
  const auto form = static_cast<PageForm>(header.form);
  // A page whose last bits are of no byte is read bit by bit.
  if (masked == MaskedAs::kPages && header.bytes % 8 == 0) {
    runs->push_back({.offset = header.offset, .bytes = bytes, .form = form, .mask = mask});
    return WireResult::kOk;
  }
  size_t next = 0;
  uint64_t end = UINT64_MAX;  // of the last run
  for (size_t i = 0; i < words; ++i) {
    for (uint64_t bits = MaskAt(mask, i, header.bytes); bits != 0;) {
      const auto first = static_cast<unsigned>(std::countr_zero(bits));
      const auto many = static_cast<unsigned>(std::countr_one(bits >> first));
      const uint64_t offset = header.offset + 64 * i + first;
      if (offset == end) {
        DeltaRun& last = runs->back();
        last.bytes = {last.bytes.data(), last.bytes.size() + many};
      } else {
        runs->push_back({offset, bytes.subspan(next, many), form});
      }
      next += many;
      end = offset + many;
      bits = first + many == 64 ? 0 : bits >> (first + many) << (first + many);
    }
  }
  return WireResult::kOk;
}

WireResult ReadWord(const PageHeader& header, Reader& reader, std::vector<DeltaRun>* runs) {
  if (header.bytes > 8 || !std::has_single_bit(header.bytes)) return WireResult::kFatal;
  std::span<const std::byte> was, is;
  LW_TRY(reader.View(header.bytes, &was));
  LW_TRY(reader.View(header.bytes, &is));
  runs->push_back({header.offset, is, PageForm::kWord, was});
  return WireResult::kOk;
}

// A word for each set bit.
WireResult ReadWords(const PageHeader& header, Reader& reader, std::vector<DeltaRun>* runs) {
  if (header.bytes % 8 != 0) return WireResult::kFatal;
  std::span<const std::byte> mask, was, is;
  LW_TRY(reader.View((header.bytes / 8 + 7) / 8, &mask));
  for (size_t word = 0; word < header.bytes / 8; ++word) {
    if ((mask[word / 8] & (std::byte{1} << word % 8)) == std::byte{0}) continue;
    LW_TRY(reader.View(8, &was));
    LW_TRY(reader.View(8, &is));
    runs->push_back({header.offset + 8 * word, is, PageForm::kWord, was});
  }
  return WireResult::kOk;
}

}  // namespace

size_t AppendDelta(std::span<const std::byte> now, std::byte* shadow, uint64_t offset,
                   PageForm form, size_t most, std::vector<std::byte>* delta) {
  size_t at = 0;
  Page copy;
  while (at < now.size() && delta->size() < most) {
    size_t bytes = std::min(kDeltaPageBytes - (offset + at) % kDeltaPageBytes, now.size() - at);
    if (std::memcmp(now.data() + at, shadow + at, bytes) != 0) {
      std::memcpy(copy.data(), now.data() + at, bytes);
      std::span<const std::byte> page = std::span(copy).first(bytes);
      PageHeader header{offset + at, static_cast<uint32_t>(bytes), static_cast<uint32_t>(form)};
      Append(std::as_bytes(std::span(&header, 1)), delta);
      if (form == PageForm::kWhole) {
        Append(page, delta);
      } else {
        AppendMasked(page, shadow + at, delta);
      }
      std::memcpy(shadow + at, page.data(), bytes);
    }
    at += bytes;
  }
  return at;
}

void AppendWord(const ChangedWord& word, std::vector<std::byte>* delta) {
  PageHeader header{word.offset, word.bytes, static_cast<uint32_t>(PageForm::kWord)};
  Append(std::as_bytes(std::span(&header, 1)), delta);
  Append(std::span(word.was).first(word.bytes), delta);
  Append(std::span(word.is).first(word.bytes), delta);
}

void AppendWordsHeader(uint64_t offset, uint32_t bytes, std::vector<std::byte>* delta) {
  PageHeader header{offset, bytes, static_cast<uint32_t>(PageForm::kWords)};
  Append(std::as_bytes(std::span(&header, 1)), delta);
}

void AppendConflict(uint64_t offset, std::vector<std::byte>* delta) {
  PageHeader header{offset, 1, static_cast<uint32_t>(PageForm::kConflict)};
  Append(std::as_bytes(std::span(&header, 1)), delta);
}

WireResult ReadDelta(std::span<const std::byte> delta, uint64_t range_bytes,
                     std::vector<DeltaRun>* runs, MaskedAs masked) {
  Reader reader(delta);
  while (reader.remaining() != 0) {
    PageHeader header{};
    LW_TRY(reader.U64(&header.offset));
    LW_TRY(reader.U32(&header.bytes));
    LW_TRY(reader.U32(&header.form));
    bool leaves = header.offset > range_bytes || header.bytes > range_bytes - header.offset;
    if (header.bytes == 0 || header.bytes > kDeltaPageBytes || (leaves && !kPlantedBug)) {
      return WireResult::kFatal;
    }
    std::span<const std::byte> bytes;
    auto form = static_cast<PageForm>(header.form);
    switch (form) {
      case PageForm::kMasked:
      case PageForm::kChecked:
        LW_TRY(ReadMasked(header, reader, runs, masked));
        break;
      case PageForm::kWhole:
        LW_TRY(reader.View(header.bytes, &bytes));
        runs->push_back({header.offset, bytes, form});
        break;
      case PageForm::kConflict:
        runs->push_back({header.offset, bytes, form});
        break;
      case PageForm::kWord:
        LW_TRY(ReadWord(header, reader, runs));
        break;
      case PageForm::kWords:
        LW_TRY(ReadWords(header, reader, runs));
        break;
      default:
        return WireResult::kFatal;
    }
  }
  return WireResult::kOk;
}

}  // namespace longwire::wire
