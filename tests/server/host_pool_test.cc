// Host memory for swapping: which worker gets which part, and what must be scrubbed first.
#include "server/keeper/host_pool.h"

#include <gtest/gtest.h>

namespace longwire::keeper {
namespace {

class HostPoolTest : public testing::Test {
 protected:
  void SetUp() override {
    pool.Add(memory.data(), 8);
    pool.Add(memory.data() + 16, 6);
  }

  static uint64_t Sum(const std::vector<HostPart>& parts, bool clear) {
    uint64_t sum = 0;
    for (const HostPart& part : parts) sum += part.clear == clear ? part.bytes : 0;
    return sum;
  }

  std::array<std::byte, 32> memory{};
  HostPool pool{2};
};

TEST_F(HostPoolTest, NeighboursAreOnePart) {
  EXPECT_EQ(pool.bytes(), 14u);
  std::vector<HostPart> parts = pool.Take(1, 11);
  ASSERT_EQ(parts.size(), 2u) << "two regions";
  EXPECT_EQ(parts[0].data, memory.data());
  EXPECT_EQ(parts[0].bytes, 8u);
  EXPECT_EQ(parts[1].data, memory.data() + 16);
  EXPECT_EQ(parts[1].bytes, 4u);
  EXPECT_EQ(pool.used(), 12u);
}

TEST_F(HostPoolTest, AllOrNothing) {
  EXPECT_TRUE(pool.Take(1, 15).empty());
  EXPECT_EQ(pool.used(), 0u);
  EXPECT_EQ(Sum(pool.Take(1, 14), false), 14u);
  EXPECT_TRUE(pool.Take(1, 1).empty());
}

TEST_F(HostPoolTest, WhatASessionFreedItGetsAsItIsAndOthersCleared) {
  pool.Free(1, pool.Take(1, 10));
  std::vector<HostPart> own = pool.Take(1, 10);
  EXPECT_EQ(Sum(own, true), 0u);
  pool.Free(1, own);
  std::vector<HostPart> others = pool.Take(2, 10);
  EXPECT_EQ(Sum(others, false), 4u) << "what nobody had comes first";
  EXPECT_EQ(Sum(others, true), 6u);
}

TEST_F(HostPoolTest, WhatEndedSessionsLeftIsClearedWithoutNeed) {
  pool.Free(1, pool.Take(1, 6));
  EXPECT_TRUE(pool.NextClears().empty()) << "it still lives";
  pool.Gone(1);
  EXPECT_EQ(pool.to_clear(), 6u);
  std::vector<HostPart> clears = pool.NextClears();
  EXPECT_EQ(Sum(clears, true), 6u);
  EXPECT_EQ(pool.room(), 8u) << "parts that are being scrubbed are not free";
  EXPECT_TRUE(pool.Take(2, 10).empty());
  pool.Cleared(clears);
  EXPECT_EQ(pool.to_clear(), 0u);
  EXPECT_EQ(Sum(pool.Take(2, 14), false), 14u);
}

TEST_F(HostPoolTest, WhatCameBackAfterTheEndIsClearedToo) {
  std::vector<HostPart> parts = pool.Take(1, 6);
  pool.Gone(1);
  pool.Free(0, parts);
  EXPECT_EQ(Sum(pool.NextClears(), true), 6u);
}

}  // namespace
}  // namespace longwire::keeper
