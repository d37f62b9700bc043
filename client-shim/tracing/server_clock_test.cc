// The server's clock on this host's.
#include "client-shim/tracing/server_clock.h"

#include <gtest/gtest.h>

namespace longwire::shim {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;

TEST(ServerClock, TheShortestRoundTripCounts) {
  ServerClock clock;
  clock.Add(1000, 501'000, 9000);      // 8 us, and the middle is 4 us off
  clock.Add(20'000, 521'000, 22'000);  // 2 us: the server is 500 us ahead
  clock.Settle();
  EXPECT_EQ(clock.error(), 1000u);
  EXPECT_EQ(clock.offset(), 500'000);
  EXPECT_EQ(clock.ToHere(600'000), 100'000u);
}

TEST(ServerClock, LinesLieBetweenPlacesAndTimesKeepTheirOrder) {
  ServerClock clock;
  clock.Add(kSecond, 2 * kSecond, kSecond + 2000);
  clock.Settle();
  // The server's clock has gained 100 us in a second.
  clock.Add(2 * kSecond, 3 * kSecond + 100'000, 2 * kSecond + 2000);
  clock.Settle();
  EXPECT_NEAR(static_cast<double>(clock.ToHere(2 * kSecond + kSecond / 2)), 1.5 * kSecond - 49'000,
              2000);
  uint64_t before = 0;
  for (uint64_t server = 2 * kSecond; server < 4 * kSecond; server += 1'000'003) {
    EXPECT_GT(clock.ToHere(server), before);
    before = clock.ToHere(server);
  }
}

TEST(ServerClock, ATimeIsAsUncertainAsTheRoundTripsAroundIt) {
  ServerClock clock;
  EXPECT_EQ(clock.ErrorAt(kSecond), 0u);
  clock.Add(kSecond, 2 * kSecond, kSecond + 2'000'000);
  clock.Settle();
  clock.Add(2 * kSecond, 3 * kSecond, 2 * kSecond + 20'000);
  clock.Settle();
  EXPECT_EQ(clock.ErrorAt(kSecond), 1'000'000u);
  EXPECT_EQ(clock.ErrorAt(2 * kSecond), 1'000'000u);
  EXPECT_NEAR(static_cast<double>(clock.ErrorAt(2 * kSecond + kSecond / 2)), 505'000, 1);
  EXPECT_EQ(clock.ErrorAt(4 * kSecond), 10'000u);
  EXPECT_EQ(clock.error(), 10'000u);
}

TEST(ServerClock, WhatIsBehindARoundTripNeverChanges) {
  ServerClock clock;
  clock.Add(kSecond, 2 * kSecond, kSecond + 2000);
  clock.Settle();
  clock.Add(2 * kSecond, 3 * kSecond + 1'000'000, 2 * kSecond + 900'000);  // a poor one
  clock.Settle();
  const uint64_t before = clock.ToHere(3 * kSecond);
  clock.Add(3 * kSecond, 4 * kSecond + 100'000, 3 * kSecond + 2000);
  clock.Settle();
  EXPECT_EQ(clock.ToHere(3 * kSecond), before);
}

TEST(ServerClock, APoorRoundTripIsIgnoredForAWhile) {
  ServerClock clock;
  clock.Add(kSecond, 2 * kSecond, kSecond + 2000);
  clock.Settle();
  clock.Add(2 * kSecond, 3 * kSecond + 400'000, 2 * kSecond + 800'000);
  clock.Settle();
  EXPECT_EQ(clock.error(), 1000u);
  clock.Add(9 * kSecond, 10 * kSecond + 400'000, 9 * kSecond + 800'000);
  clock.Settle();
  EXPECT_EQ(clock.error(), 400'000u);
}

TEST(ServerClock, WithoutARoundTripTimesStayAsTheyAre) {
  ServerClock clock;
  clock.Settle();
  EXPECT_EQ(clock.ToHere(77), 77u);
}

}  // namespace
}  // namespace longwire::shim
