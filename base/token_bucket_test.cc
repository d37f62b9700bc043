#include "base/token_bucket.h"

#include <gtest/gtest.h>

#include "base/line_limit.h"

namespace longwire::base {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
const TokenBucket::Clock::time_point kStart{seconds(1000)};

TEST(TokenBucketTest, ABurstThenTheRate) {
  TokenBucket bucket(10, 3, kStart);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(bucket.Take(kStart));
  EXPECT_FALSE(bucket.Take(kStart));
  EXPECT_FALSE(bucket.Take(kStart + milliseconds(90)));
  EXPECT_TRUE(bucket.Take(kStart + milliseconds(101)));
  EXPECT_FALSE(bucket.Take(kStart + milliseconds(110)));
  EXPECT_TRUE(bucket.IsFull(kStart + seconds(60)));
}

TEST(TokenBucketTest, ThoseWhoWaitComeOneAfterAnother) {
  TokenBucket bucket(10, 1, kStart);
  EXPECT_EQ(bucket.Reserve(kStart, seconds(1)).count(), 0);
  auto before = milliseconds(0);
  for (int i = 0; i < 10; ++i) {
    auto wait = std::chrono::round<milliseconds>(bucket.Reserve(kStart, seconds(1)));
    EXPECT_EQ(wait, before + milliseconds(100));
    before = wait;
  }
  EXPECT_LT(bucket.Reserve(kStart, seconds(1)).count(), 0);
  EXPECT_GE(bucket.Reserve(kStart + milliseconds(200), seconds(1)).count(), 0);
}

TEST(LineLimitTest, CountsWhatIsLeftOut) {
  LineLimit limit(1, 2, kStart);
  EXPECT_TRUE(limit.Allows(kStart));
  EXPECT_TRUE(limit.Allows(kStart));
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(limit.Allows(kStart));
  EXPECT_FALSE(limit.IsIdle(kStart + seconds(60)));
  EXPECT_TRUE(limit.Allows(kStart + seconds(2)));
  EXPECT_EQ(limit.TakeLeftOut(), 5u);
  EXPECT_EQ(limit.TakeLeftOut(), 0u);
  EXPECT_TRUE(limit.IsIdle(kStart + seconds(60)));
}

}  // namespace
}  // namespace longwire::base
