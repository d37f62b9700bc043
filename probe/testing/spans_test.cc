#include "probe/spans.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

#include "probe/helpers.h"
#include "probe/include/longwire/probe.h"

namespace longwire::probe {
namespace {

using Words = std::vector<uint64_t>;

// A map's memory with a counter and records.
Words Memory(uint32_t entries, uint64_t put, const std::vector<std::array<uint64_t, 4>>& records) {
  Words words((entries + 1) * 4);
  words[0] = put;
  for (size_t i = 0; i < records.size(); ++i) {
    std::ranges::copy(records[i], words.begin() + static_cast<ptrdiff_t>(4 * (i + 1)));
  }
  return words;
}

TEST(SpansTest, AreTheRecordsOfTheMap) {
  const policy::MapShape shape{"warps", LW_SPANS, 3};
  Totals totals({shape});
  totals.Name(7, "Add");
  const Words memory = Memory(3, 2, {{7, 4, 100, 130}, {8, 5, 90, 95}});
  std::array<Span, 4> found{};
  uint64_t lost = 9;
  EXPECT_EQ(2u, SpansIn(shape, memory.data(), totals, found, &lost));
  EXPECT_EQ(0u, lost);
  EXPECT_STREQ("Add", found[0].kernel);
  EXPECT_EQ(4u, found[0].number);
  EXPECT_EQ(100u, found[0].began);
  EXPECT_EQ(130u, found[0].ended);
  EXPECT_STREQ("?", found[1].kernel);
}

TEST(SpansTest, WhatHadNoRoomIsCountedAndNeverRead) {
  const policy::MapShape shape{"warps", LW_SPANS, 2};
  const Words memory = Memory(2, 1000, {{1, 1, 1, 1}, {2, 2, 2, 2}});
  std::array<Span, 1> found{};
  uint64_t lost = 0;
  EXPECT_EQ(2u, SpansIn(shape, memory.data(), Totals({shape}), found, &lost));
  EXPECT_EQ(998u, lost);
  EXPECT_EQ(1u, found[0].number);
}

TEST(SpansTest, OtherMapsHaveNone) {
  const policy::MapShape shape{"exits", LW_RING, 2};
  const Words memory = Memory(2, 1, {{1, 1, 1, 1}});
  uint64_t lost = 1;
  EXPECT_EQ(0u, SpansIn(shape, memory.data(), Totals({shape}), {}, &lost));
  EXPECT_EQ(0u, lost);
}

TEST(SpansTest, TheReportSaysWhenTheyEndedAndHowLongTheyTook) {
  const policy::MapShape shape{"warps", LW_SPANS, 2};
  Totals totals({shape});
  totals.Name(7, "Add");
  totals.Add(0, Memory(2, 1, {{7, 4, 100, 130}}).data());
  EXPECT_EQ("warps\n  Add  4  130  30\n  1 records, 1 shown, 0 lost because the map was full\n",
            totals.Text());
}

}  // namespace
}  // namespace longwire::probe
