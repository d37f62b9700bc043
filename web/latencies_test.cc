// Percentiles from buckets.
#include "web/latencies.h"

#include <gmock/gmock.h>

namespace longwire::web {
namespace {

using testing::SizeIs;

transport::InspectReply With(std::vector<uint64_t> counts) {
  transport::InspectReply reply;
  transport::Latency* latency = reply.add_latencies();
  latency->set_of("session opening");
  for (double bound : {0.1, 1.0, 10.0}) latency->add_bounds(bound);
  latency->mutable_counts()->Add(counts.begin(), counts.end());
  return reply;
}

TEST(PercentilesTest, AreInterpolated) {
  const Percentiles one = PercentilesOf({1, 2, 4}, {50, 40, 10, 0});
  EXPECT_EQ(one.count, 100u);
  EXPECT_DOUBLE_EQ(*one.p50, 1);
  EXPECT_DOUBLE_EQ(*one.p95, 3);
  EXPECT_DOUBLE_EQ(*one.p99, 3.8);
  EXPECT_FALSE(one.beyond);
}

TEST(PercentilesTest, BeyondTheLastBound) {
  const Percentiles one = PercentilesOf({1, 2}, {0, 0, 5});
  EXPECT_DOUBLE_EQ(*one.p50, 2);
  EXPECT_TRUE(one.beyond);
}

TEST(PercentilesTest, OfNothingThereAreNone) {
  EXPECT_FALSE(PercentilesOf({1, 2}, {0, 0, 0}).p50);
  EXPECT_FALSE(PercentilesOf({}, {}).p99);
}

TEST(LatenciesTest, OfTheLastMinuteAndOfAllTime) {
  Latencies latencies;
  latencies.Add(1000, With({10, 0, 0, 0}), false);
  for (int64_t second = 1001; second <= 1100; ++second) {
    latencies.Add(second, With({10, 0, second > 1080 ? uint64_t{4} : 0, 0}), true);
  }
  const auto rows = latencies.Rows();
  ASSERT_THAT(rows, SizeIs(1));
  EXPECT_EQ(rows[0].minute.count, 4u);
  EXPECT_GT(*rows[0].minute.p50, 1);
  EXPECT_EQ(rows[0].all.count, 14u);
  EXPECT_LT(*rows[0].all.p50, 0.1);
}

TEST(LatenciesTest, AnotherDaemonCountsAnew) {
  Latencies latencies;
  latencies.Add(1000, With({100, 0, 0, 0}), false);
  latencies.Add(1001, With({1, 0, 0, 0}), false);
  EXPECT_EQ(latencies.Rows()[0].all.count, 1u);
  EXPECT_EQ(latencies.Rows()[0].minute.count, 0u);
}

TEST(LatenciesTest, WhatDoesNotFitIsLeftOut) {
  Latencies latencies;
  transport::InspectReply reply = With({1, 2});  // too few for its bounds
  latencies.Add(1000, reply, false);
  EXPECT_THAT(latencies.Rows(), SizeIs(0));
}

}  // namespace
}  // namespace longwire::web
