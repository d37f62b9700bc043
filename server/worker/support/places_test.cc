#include "server/worker/support/places.h"

#include <gtest/gtest.h>

namespace longwire::worker {
namespace {

TEST(Places, AreReachedInTheirOrder) {
  Places places;
  for (uint64_t position : {30, 10, 20, 10}) places.Add(position);
  EXPECT_FALSE(places.AnyUpTo(9));
  EXPECT_TRUE(places.Reach(10));
  EXPECT_FALSE(places.Reach(19));
  EXPECT_TRUE(places.Reach(30));
  EXPECT_FALSE(places.Reach(UINT64_MAX));
}

TEST(Places, OfVeryManyEachCounts) {
  Places places;
  constexpr uint64_t kMany = 100'000;
  for (uint64_t position = 2; position <= kMany; position += 2) places.Add(position);
  for (uint64_t position = 2; position <= kMany; position += 2) {
    ASSERT_TRUE(places.AnyUpTo(position)) << position;
    ASSERT_TRUE(places.Reach(position)) << position;
  }
  EXPECT_FALSE(places.Reach(UINT64_MAX));
  places.Add(kMany + 2);  // and then only what is asked for, again
  EXPECT_FALSE(places.Reach(kMany + 1));
  EXPECT_TRUE(places.Reach(kMany + 2));
}

}  // namespace
}  // namespace longwire::worker
