#include "server/worker/places.h"

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

TEST(Places, OfVeryManyTheNewestIsKept) {
  Places places;
  constexpr uint64_t kMany = 1'000'000;
  for (uint64_t position = 1; position <= kMany; ++position) places.Add(position);
  size_t reached = 0;
  for (uint64_t position = 1; position <= kMany; ++position) {
    reached += places.Reach(position) ? 1 : 0;
    if (position == kMany - 1) EXPECT_TRUE(places.AnyUpTo(kMany));
  }
  EXPECT_EQ(reached, Places::kMost);
}

}  // namespace
}  // namespace longwire::worker
