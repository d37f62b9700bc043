#include "wire/spinning.h"

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

}  // namespace
}  // namespace longwire::wire
