#include "server/admission/openings.h"

#include <gtest/gtest.h>

namespace longwire::admission {
namespace {

constexpr Openings::Rate kRate{10, 5};
const Openings::Clock::time_point kStart{std::chrono::seconds(1000)};

TEST(OpeningsTest, OneIdentityOpensNoFasterThanItsRate) {
  Openings openings;
  Openings::Clock::duration wait{};
  int at_once = 0, later = 0;
  for (int i = 0; i < 1000; ++i) {
    if (!openings.Reserve("flood", kRate, kStart, &wait)) continue;
    wait.count() == 0 ? ++at_once : ++later;
  }
  EXPECT_EQ(at_once, 5);
  EXPECT_EQ(later, 30);  // in three seconds
  EXPECT_EQ(openings.refused(), 965u);
  EXPECT_TRUE(openings.Reserve("neighbour", kRate, kStart, &wait));
  EXPECT_EQ(wait.count(), 0);
}

TEST(OpeningsTest, WhoGoesAwayWaitsNoLonger) {
  Openings openings;
  std::atomic<bool> cancelled{true};
  EXPECT_FALSE(openings.Await("b", kRate, cancelled));
  cancelled = false;
  EXPECT_TRUE(openings.Await("b", kRate, cancelled));
}

TEST(OpeningsTest, ManyIdentitiesAreForgotten) {
  Openings openings;
  Openings::Clock::duration wait{};
  for (int i = 0; i < 100'000; ++i) {
    EXPECT_TRUE(
        openings.Reserve(std::to_string(i), kRate, kStart + std::chrono::seconds(i), &wait));
  }
}

}  // namespace
}  // namespace longwire::admission
