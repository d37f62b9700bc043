#include "wire/page_delta.h"

#include <gtest/gtest.h>

#include <cstring>

namespace longwire::wire {
namespace {

using Bytes = std::vector<std::byte>;

// By runs, and by pages, which has to give the same.
void Apply(const Bytes& delta, Bytes* memory) {
  Bytes by_pages = *memory;
  std::vector<DeltaRun> runs, pages;
  ASSERT_EQ(ReadDelta(delta, memory->size(), &runs), WireResult::kOk);
  for (const DeltaRun& run : runs) {
    std::memcpy(memory->data() + run.offset, run.bytes.data(), run.bytes.size());
  }
  ASSERT_EQ(ReadDelta(delta, memory->size(), &pages, MaskedAs::kPages), WireResult::kOk);
  for (const DeltaRun& page : pages) {
    std::byte* place = by_pages.data() + page.offset;
    if (page.mask.empty()) std::memcpy(place, page.bytes.data(), page.bytes.size());
    EachMaskedWord(page, [&](const MaskedWord& word) {
      for (size_t i = 0; i < 8; ++i) {
        if ((word.bits >> i & 1) != 0) place[word.at + i] = word.value[i];
      }
    });
  }
  EXPECT_EQ(by_pages, *memory);
}

Bytes Pattern(size_t bytes, int seed) {
  Bytes pattern(bytes);
  for (size_t i = 0; i < bytes; ++i) pattern[i] = static_cast<std::byte>(i * 7 + i / 251 + seed);
  return pattern;
}

TEST(PageDelta, CarriesWhatChangedAndNothingElse) {
  for (PageForm form : {PageForm::kMasked, PageForm::kWhole}) {
    Bytes before = Pattern(3 * kDeltaPageBytes + 100, 1), now = before, shadow = before, delta;
    now[5] ^= std::byte{1};
    now[6] ^= std::byte{2};
    now[kDeltaPageBytes - 1] ^= std::byte{3};
    now.back() ^= std::byte{4};
    EXPECT_EQ(AppendDelta(now, shadow.data(), 0, form, SIZE_MAX, &delta), now.size());
    EXPECT_EQ(shadow, now);
    Bytes other = before;
    Apply(delta, &other);
    EXPECT_EQ(other, now);
  }
}

TEST(PageDelta, LeavesTheOtherEndsBytesAlone) {
  Bytes before = Pattern(kDeltaPageBytes, 2), now = before, shadow = before, delta;
  for (size_t i = 0; i < now.size(); i += 2) now[i] = ~now[i];
  AppendDelta(now, shadow.data(), 0, PageForm::kMasked, SIZE_MAX, &delta);
  Bytes other = before;
  for (size_t i = 1; i < other.size(); i += 2) other[i] = std::byte{0x5a};
  Apply(delta, &other);
  for (size_t i = 0; i < other.size(); ++i) {
    ASSERT_EQ(other[i], i % 2 == 0 ? now[i] : std::byte{0x5a}) << i;
  }
}

TEST(PageDelta, CarriesAnyMixOfChangedBytes) {
  for (unsigned every = 1; every < 70; ++every) {
    Bytes before = Pattern(2 * kDeltaPageBytes + every % 9, 7), now = before, shadow = before,
          delta;
    for (size_t i = every % 5; i < now.size(); i += 1 + (i * every) % every) {
      now[i] ^= static_cast<std::byte>(1 + i % 255);
    }
    AppendDelta(now, shadow.data(), 0, PageForm::kMasked, SIZE_MAX, &delta);
    Bytes other = before;
    Apply(delta, &other);
    EXPECT_EQ(other, now) << every;
  }
}

TEST(PageDelta, StopsWhenItHasEnoughAndGoesOnFromThere) {
  Bytes now = Pattern(10 * kDeltaPageBytes, 3), shadow(now.size()), other(now.size());
  size_t at = 100;
  std::memcpy(shadow.data(), now.data(), at);
  std::memcpy(other.data(), now.data(), at);
  int deltas = 0;
  for (; at < now.size(); ++deltas) {
    Bytes delta;
    at += AppendDelta(std::span(now).subspan(at), shadow.data() + at, at, PageForm::kMasked,
                      2 * kDeltaPageBytes, &delta);
    EXPECT_LE(delta.size(), 2 * kDeltaPageBytes + kMaxDeltaOfPage);
    Apply(delta, &other);
  }
  EXPECT_GT(deltas, 3);
  EXPECT_EQ(other, now);
}

TEST(PageDelta, IsEmptyWhereNothingChanged) {
  Bytes now = Pattern(5000, 4), shadow = now, delta;
  EXPECT_EQ(AppendDelta(now, shadow.data(), 0, PageForm::kWhole, SIZE_MAX, &delta), now.size());
  EXPECT_TRUE(delta.empty());
}

TEST(PageDelta, RefusesWhatLeavesTheRangeOrIsCutShort) {
  Bytes now = Pattern(2 * kDeltaPageBytes, 5), shadow(now.size()), delta;
  AppendDelta(now, shadow.data(), 0, PageForm::kMasked, SIZE_MAX, &delta);
  std::vector<DeltaRun> runs;
  EXPECT_EQ(ReadDelta(delta, now.size(), &runs), WireResult::kOk);
  EXPECT_EQ(ReadDelta(delta, now.size() - 1, &runs), WireResult::kFatal);
  for (size_t bytes = 1; bytes < delta.size(); bytes += 97) {
    runs.clear();
    WireResult result = ReadDelta(std::span(delta).first(bytes), now.size(), &runs);
    for (const DeltaRun& run : runs) EXPECT_LE(run.offset + run.bytes.size(), now.size());
    if (result == WireResult::kOk) EXPECT_EQ(runs.back().offset + runs.back().bytes.size(), 4096u);
  }
  delta[12] = std::byte{9};  // the form of the first page
  EXPECT_EQ(ReadDelta(delta, now.size(), &runs), WireResult::kFatal);
}

TEST(PageDelta, AWordIsOfOneTwoFourOrEightBytes) {
  for (uint32_t bytes : {0u, 1u, 2u, 3u, 4u, 7u, 8u}) {
    ChangedWord word;
    word.offset = 16;
    word.bytes = bytes;
    word.was[0] = std::byte{1};
    word.is[0] = std::byte{2};
    std::vector<std::byte> delta;
    AppendWord(word, &delta);
    std::vector<DeltaRun> runs;
    const bool good = bytes != 0 && (bytes & (bytes - 1)) == 0;
    EXPECT_EQ(ReadDelta(delta, 24, &runs) == WireResult::kOk, good) << bytes;
    if (!good) continue;
    ASSERT_EQ(runs.size(), 1u);
    EXPECT_EQ(runs[0].form, PageForm::kWord);
    EXPECT_EQ(runs[0].offset, 16u);
    EXPECT_EQ(runs[0].bytes.size(), bytes);
    EXPECT_EQ(runs[0].was[0], std::byte{1});
    EXPECT_EQ(runs[0].bytes[0], std::byte{2});
    runs.clear();
    EXPECT_EQ(ReadDelta(delta, 16, &runs), WireResult::kFatal) << "behind the range";
    EXPECT_EQ(ReadDelta(std::span(delta).first(delta.size() - 1), 24, &runs), WireResult::kFatal);
  }
}

}  // namespace
}  // namespace longwire::wire
