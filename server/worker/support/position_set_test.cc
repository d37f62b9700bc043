#include "server/worker/support/position_set.h"

#include <gtest/gtest.h>

namespace longwire::worker {
namespace {

TEST(PositionSet, AreReachedInTheirOrder) {
  PositionSet positions;
  for (uint64_t position : {30, 10, 20, 10}) positions.Add(position);
  EXPECT_FALSE(positions.AnyUpTo(9));
  EXPECT_TRUE(positions.Reach(10));
  EXPECT_FALSE(positions.Reach(19));
  EXPECT_TRUE(positions.Reach(30));
  EXPECT_FALSE(positions.Reach(UINT64_MAX));
}

TEST(PositionSet, OfVeryManyEachCounts) {
  PositionSet positions;
  constexpr uint64_t kMany = 100'000;
  for (uint64_t position = 2; position <= kMany; position += 2) positions.Add(position);
  for (uint64_t position = 2; position <= kMany; position += 2) {
    ASSERT_TRUE(positions.AnyUpTo(position)) << position;
    ASSERT_TRUE(positions.Reach(position)) << position;
  }
  EXPECT_FALSE(positions.Reach(UINT64_MAX));
  positions.Add(kMany + 2);  // and then only what is asked for, again
  EXPECT_FALSE(positions.Reach(kMany + 1));
  EXPECT_TRUE(positions.Reach(kMany + 2));
}

}  // namespace
}  // namespace longwire::worker
