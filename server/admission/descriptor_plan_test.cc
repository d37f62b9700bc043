#include "server/admission/descriptor_plan.h"

#include <gtest/gtest.h>

namespace longwire::admission {
namespace {

TEST(DescriptorPlanTest, EnoughForAllThatTheLimitsAllow) {
  DescriptorPlan plan = PlanDescriptors(65536, 1024);
  EXPECT_EQ(plan.waiting, 1024u);
  EXPECT_GT(plan.sessions, 256 * DescriptorsOfSession(16, false));
}

TEST(DescriptorPlanTest, StrangersHaveTheSmallerPart) {
  for (size_t limit : {size_t{128}, size_t{256}, size_t{1024}, size_t{4096}}) {
    DescriptorPlan plan = PlanDescriptors(limit, 1024);
    EXPECT_GE(plan.waiting, 2u);
    EXPECT_LE(plan.waiting * 2 + plan.sessions, limit);
    EXPECT_GE(plan.sessions, plan.waiting * 5);
  }
  EXPECT_EQ(PlanDescriptors(10, 1024).sessions, 0u);
}

}  // namespace
}  // namespace longwire::admission
