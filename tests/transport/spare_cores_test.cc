#include "link/spare_cores.h"

#include <gtest/gtest.h>

namespace longwire::link {
namespace {

TEST(SpareCores, ThreadsThatWantACore) {
  EXPECT_EQ(RunningThreads("0.20 0.18 0.12 3/80 11206\n"), 3);
  EXPECT_EQ(RunningThreads("30.16 18.90 12.66 36/685 21215"), 36);
}

TEST(SpareCores, WhatIsNotKnownIsNotSpare) {
  EXPECT_EQ(RunningThreads(""), std::nullopt);
  EXPECT_EQ(RunningThreads("0.00 0.00 0.00 0/0 0"), std::nullopt) << "the caller itself runs";
  EXPECT_EQ(RunningThreads("busy"), std::nullopt);
}

}  // namespace
}  // namespace longwire::link
