#include "wire/rings/spinning.h"

#include <gtest/gtest.h>

namespace longwire::wire {
namespace {

using std::chrono::microseconds;
using std::chrono::nanoseconds;

TEST(SpinPrediction, LooksThroughWaitsLikeTheLast) {
  SpinPrediction spin(16);
  EXPECT_EQ(microseconds(50), spin.Spin());
  spin.Waited(microseconds(400));
  EXPECT_EQ(microseconds(800), spin.Spin());
  spin.Waited(microseconds(2));
  EXPECT_EQ(microseconds(700), spin.Spin());
  for (int i = 0; i < 100; ++i) spin.Waited(microseconds(2));
  EXPECT_EQ(microseconds(50), spin.Spin());
  spin.Waited(microseconds(900));
  EXPECT_EQ(microseconds(1000), spin.Spin());
}

TEST(SpinPrediction, OnePauseDoesNotMakeABusyThreadSleep) {
  SpinPrediction spin(16);
  spin.Waited(microseconds(300));
  spin.Waited(std::chrono::seconds(1));
  EXPECT_EQ(microseconds(600), spin.Spin());
  spin.Waited(std::chrono::seconds(1));
  EXPECT_EQ(microseconds(50), spin.Spin());
}

TEST(SpinPrediction, FewCoresDoNotLookForLongAndOneNotAtAll) {
  SpinPrediction few(2), one(1);
  few.Waited(microseconds(100));
  one.Waited(microseconds(100));
  EXPECT_EQ(microseconds(200), few.Spin());
  EXPECT_EQ(nanoseconds(0), one.Spin());
  few.Waited(microseconds(250));
  EXPECT_EQ(microseconds(300), few.Spin());
  for (int i = 0; i < 2; ++i) few.Waited(microseconds(600));
  EXPECT_EQ(microseconds(50), few.Spin()) << "waits of such a length are slept through";
}

TEST(SpinPrediction, LongWaitsAreLookedThroughAtTheirEndOnly) {
  constexpr auto kUntilItEnds = nanoseconds::max();
  SpinPrediction spin(16);
  auto part = [&](int us) { return spin.Next(microseconds(us)); };
  EXPECT_EQ(microseconds(50), part(0).spin);
  EXPECT_EQ(microseconds(20), part(30).spin);
  EXPECT_EQ(kUntilItEnds, part(60).sleep);
  spin.Waited(microseconds(8000));
  EXPECT_EQ(kUntilItEnds, part(60).sleep) << "one says nothing of the next";
  spin.Waited(microseconds(8200));
  EXPECT_EQ(microseconds(50), part(0).spin);
  EXPECT_EQ(microseconds(7900), part(0).sleep) << "until 250 us before the end";
  EXPECT_EQ(nanoseconds(0), part(60).spin);
  EXPECT_EQ(microseconds(7890), part(60).sleep);
  EXPECT_EQ(microseconds(450), part(8000).spin);
  EXPECT_EQ(nanoseconds(0), part(8500).spin);
  EXPECT_EQ(kUntilItEnds, part(8500).sleep);
  spin.Waited(microseconds(2));
  EXPECT_EQ(microseconds(7900), part(0).sleep) << "short ones come in between";
  spin.Waited(microseconds(4000));
  EXPECT_EQ(kUntilItEnds, part(60).sleep) << "they differ";
}

TEST(SpinPrediction, WithFewCoresLongWaitsAreSleptThrough) {
  SpinPrediction few(2);
  for (int i = 0; i < 3; ++i) few.Waited(microseconds(8000));
  EXPECT_EQ(nanoseconds(0), few.Next(microseconds(7900)).spin);
  EXPECT_EQ(nanoseconds::max(), few.Next(microseconds(60)).sleep);
}

}  // namespace
}  // namespace longwire::wire
