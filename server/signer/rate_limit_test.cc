// How often: for one key, for all, and how much is remembered of them.
#include "server/signer/rate_limit.h"

#include <gtest/gtest.h>

namespace longwire::signer {
namespace {

using std::chrono::seconds;

TEST(RateLimitTest, AKeyHasItsBurstAndThenItsRate) {
  RateLimit limit({3, 6}, {100, 100});
  RateLimit::Time now{};
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(limit.Take("a", now));
  EXPECT_FALSE(limit.Take("a", now));
  EXPECT_TRUE(limit.Take("b", now));
  EXPECT_FALSE(limit.Take("a", now + seconds(9)));
  EXPECT_TRUE(limit.Take("a", now + seconds(10)));
  EXPECT_FALSE(limit.Take("a", now + seconds(10)));
}

TEST(RateLimitTest, AllKeysTogetherHaveTheirs) {
  RateLimit limit({3, 6}, {5, 60});
  RateLimit::Time now{};
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(limit.Take(std::to_string(i), now));
  EXPECT_FALSE(limit.Take("other", now));
  EXPECT_TRUE(limit.Take("other", now + seconds(1)));
}

TEST(RateLimitTest, KeysThatMayAgainAreForgotten) {
  RateLimit limit({3, 60}, {1e9, 1e9});
  RateLimit::Time now{};
  for (int i = 0; i < 100'000; ++i) limit.Count(std::to_string(i), now + seconds(i));
  EXPECT_LE(limit.keys(), 4096u);
}

}  // namespace
}  // namespace longwire::signer
