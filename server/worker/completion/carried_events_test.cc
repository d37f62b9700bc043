// How long a session was away, by two clocks of which one may have begun anew.
#include "server/worker/completion/carried_events.h"

#include <gtest/gtest.h>

namespace longwire::worker {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;
constexpr uint64_t kDate = 1'700'000'000 * kSecond;

TEST(CarriedEventsTest, BothClocksAgree) {
  EXPECT_EQ(PauseBetween({50 * kSecond, kDate}, {53 * kSecond, kDate + 3 * kSecond + 7}),
            3 * kSecond);
}

TEST(CarriedEventsTest, AHostThatBootedAnewCountsBySystemTime) {
  const uint64_t hour = 3600 * kSecond;
  // It had been up for less time before, or for more.
  EXPECT_EQ(PauseBetween({50 * kSecond, kDate}, {90 * kSecond, kDate + hour}), hour);
  EXPECT_EQ(PauseBetween({50 * kSecond, kDate}, {20 * kSecond, kDate + hour}), hour);
}

TEST(CarriedEventsTest, NoTimeIsNegative) {
  EXPECT_EQ(PauseBetween({50 * kSecond, kDate}, {20 * kSecond, kDate - kSecond}), 0u);
}

}  // namespace
}  // namespace longwire::worker
