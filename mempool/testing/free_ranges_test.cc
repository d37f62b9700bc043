#include "mempool/free_ranges.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace longwire::mempool {
namespace {

TEST(FreeRanges, NeighboursAreJoined) {
  FreeRanges free;
  free.Add(0x1000, 0x1000);
  free.Add(0x3000, 0x1000);
  EXPECT_EQ(0x1000u, free.largest());
  free.Add(0x2000, 0x1000);
  EXPECT_EQ(0x3000u, free.largest());
  EXPECT_TRUE(free.Contains(0x1800, 0x2800));
  EXPECT_FALSE(free.Contains(0x1800, 0x2801));
  EXPECT_FALSE(free.Contains(0xfff, 1));
}

TEST(FreeRanges, TheSmallestThatFitsIsTaken) {
  FreeRanges free;
  free.Add(0x10000, 0x8000);
  free.Add(0x40000, 0x2000);
  free.Add(0x80000, 0x4000);
  uint64_t address = 0;
  ASSERT_TRUE(free.Take(0x1800, &address));
  EXPECT_EQ(0x40000u, address);
  ASSERT_TRUE(free.Take(0x4000, &address));
  EXPECT_EQ(0x80000u, address);
  EXPECT_FALSE(free.Take(0x8001, &address));
  EXPECT_EQ(0x8000u + 0x800, free.total());
}

TEST(FreeRanges, TheLowestFromAPlaceOnIsTaken) {
  FreeRanges free;
  free.Add(0x1000, 0x2000);
  free.Add(0x8000, 0x4000);
  uint64_t address = 0;
  ASSERT_TRUE(free.TakeLowest(0x1000, &address, 0x1800));
  EXPECT_EQ(0x1800u, address) << "within a stretch";
  ASSERT_TRUE(free.TakeLowest(0x1000, &address, 0x1800));
  EXPECT_EQ(0x8000u, address);
  ASSERT_TRUE(free.TakeLowest(0x1000, &address, 0xa000));
  EXPECT_EQ(0xa000u, address);
  EXPECT_FALSE(free.TakeLowest(0x1800, &address, 0xa000));
  ASSERT_TRUE(free.TakeLowest(0x800, &address));
  EXPECT_EQ(0x1000u, address);
}

TEST(FreeRanges, WhatIsTakenNeverOverlapsAndAllComesBack) {
  FreeRanges free;
  constexpr uint64_t kTotal = 1 << 20;
  free.Add(0x100000, kTotal);
  std::map<uint64_t, uint64_t> taken;
  std::mt19937_64 random(5);
  for (int step = 0; step < 20000; ++step) {
    uint64_t address = 0, bytes = 1 + random() % 5000;
    if (random() % 2 == 0 && free.Take(bytes, &address)) {
      auto after = taken.lower_bound(address);
      ASSERT_TRUE(after == taken.end() || address + bytes <= after->first);
      if (after != taken.begin()) {
        --after;
        ASSERT_LE(after->first + after->second, address);
      }
      taken[address] = bytes;
    } else if (!taken.empty()) {
      auto any = taken.lower_bound(0x100000 + random() % kTotal);
      if (any == taken.end()) any = taken.begin();
      free.Add(any->first, any->second);
      taken.erase(any);
    }
  }
  for (auto [address, bytes] : taken) free.Add(address, bytes);
  EXPECT_EQ(kTotal, free.largest());
}

}  // namespace
}  // namespace longwire::mempool
