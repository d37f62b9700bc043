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

// One bit for each byte that differs; whole words that are equal cost one comparison.
void AppendMasked(std::span<const std::byte> page, const std::byte* shadow,
                  std::vector<std::byte>* delta) {
  std::array<std::byte, kDeltaPageBytes / 8> mask{};
  Page changed;
  size_t count = 0;
  for (size_t word = 0; word < page.size(); word += 8) {
    size_t end = std::min(word + 8, page.size());
    if (std::memcmp(page.data() + word, shadow + word, end - word) == 0) continue;
    for (size_t i = word; i < end; ++i) {
      if (page[i] == shadow[i]) continue;
      mask[word / 8] |= std::byte{1} << (i - word);
      changed[count++] = page[i];
    }
  }
  Append(std::span(mask).first((page.size() + 7) / 8), delta);
  Append(std::span(changed).first(count), delta);
}

// The runs of set bits.
WireResult ReadMasked(const PageHeader& header, Reader& reader, std::vector<DeltaRun>* runs) {
  std::span<const std::byte> mask, bytes;
  LW_TRY(reader.View((header.bytes + 7) / 8, &mask));
  for (size_t i = 0; i < header.bytes;) {
    auto is_set = [&](size_t at) {
      return (mask[at / 8] & (std::byte{1} << at % 8)) != std::byte{0};
    };
    if (!is_set(i)) {
      ++i;
      continue;
    }
    size_t end = i;
    while (end < header.bytes && is_set(end)) ++end;
    LW_TRY(reader.View(end - i, &bytes));
    runs->push_back({header.offset + i, bytes, static_cast<PageForm>(header.form)});
    i = end;
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
                     std::vector<DeltaRun>* runs) {
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
        LW_TRY(ReadMasked(header, reader, runs));
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
