// Whom the keeper asks to let go of memory, when it asks again, and whom it ends.
#include "server/keeper/swaps.h"

#include <gtest/gtest.h>

namespace longwire::keeper {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Hope = Swaps::Hope;

class SwapsTest : public testing::Test {
 protected:
  void SetUp() override {
    Have(1, {100, 100});
    Have(2, {100, 100});
  }

  void Have(uint64_t worker, std::vector<uint64_t> sizes) {
    for (uint64_t bytes : sizes) {
      Region region{++regions, worker, bytes};
      movable.push_back(region);
      policy->Added(region);
    }
  }

  Hope Want(uint64_t bytes, uint64_t room = 1000, bool partly = false, uint64_t leaving = 0) {
    asks.clear();
    return swaps.Advance({bytes, room, leaving, partly, movable}, now, &asks);
  }

  std::vector<uint64_t> Answer(uint64_t worker, SwapAnswer answer) {
    for (const Swaps::Ask& ask : asks) {
      if (ask.worker != worker) continue;
      return swaps.Answered(worker, {ask.packet.request, static_cast<uint32_t>(answer)}, now);
    }
    ADD_FAILURE() << worker << " was not asked";
    return {};
  }

  uint64_t regions = 0;
  std::unique_ptr<SwapPolicy> policy = LeastRecentlyUsed();
  Swaps swaps{*policy, {}};
  Swaps::Time now{seconds(1000)};
  std::vector<Region> movable;
  std::vector<Swaps::Ask> asks;
};

TEST_F(SwapsTest, OneQuestionForAllOfASessionsChunksAndOneAtATime) {
  EXPECT_EQ(Want(150), Hope::kComing);
  ASSERT_EQ(asks.size(), 1u);
  EXPECT_EQ(asks[0].worker, 1u);
  EXPECT_EQ(asks[0].packet.chunks.size(), 2u);
  EXPECT_EQ(asks[0].packet.patience, 20u);
  auto first = asks;
  EXPECT_EQ(Want(150), Hope::kComing);
  EXPECT_TRUE(asks.empty());
  asks = first;
  EXPECT_EQ(Answer(1, SwapAnswer::kLeft), (std::vector<uint64_t>{1, 2}));
  EXPECT_TRUE(Answer(1, SwapAnswer::kLeft).empty()) << "an answer counts once";
}

TEST_F(SwapsTest, WhileSomethingLeavesNobodyIsAsked) {
  EXPECT_EQ(Want(150, 1000, false, 64), Hope::kComing);
  EXPECT_TRUE(asks.empty());
}

TEST_F(SwapsTest, WhoIsBusyIsAskedAgainAfterAMomentAndCountsAsUsed) {
  Want(150);
  EXPECT_TRUE(Answer(1, SwapAnswer::kBusy).empty());
  EXPECT_EQ(Want(150), Hope::kComing);
  ASSERT_EQ(asks.size(), 1u);
  EXPECT_EQ(asks[0].worker, 2u);
  Answer(2, SwapAnswer::kBusy);
  EXPECT_EQ(Want(150), Hope::kLater);
  EXPECT_TRUE(asks.empty());
  now += swaps.times().pause;
  EXPECT_EQ(Want(150), Hope::kComing);
  EXPECT_EQ(asks[0].worker, 1u) << "2 was busy later";
}

TEST_F(SwapsTest, WhoNeverLetsGoIsNoHope) {
  Want(150);
  Answer(1, SwapAnswer::kNever);
  EXPECT_EQ(Want(300), Hope::kNone);
  EXPECT_EQ(Want(150), Hope::kComing);
  EXPECT_EQ(asks[0].worker, 2u);
}

TEST_F(SwapsTest, WhoCameBackStaysAsLongAsThatTook) {
  swaps.CameBack(1, now - seconds(3), now);
  swaps.CameBack(2, now - milliseconds(1), now);
  EXPECT_EQ(Want(150), Hope::kLater);
  now += swaps.times().stay;
  EXPECT_EQ(Want(300), Hope::kLater);
  EXPECT_EQ(Want(150), Hope::kComing);
  EXPECT_EQ(asks[0].worker, 2u);
  Answer(2, SwapAnswer::kBusy);
  now += seconds(3);
  EXPECT_EQ(Want(300), Hope::kComing);
}

TEST_F(SwapsTest, WhoDoesNotAnswerInTimeIsLateOnceAndNotWaitedFor) {
  Want(150);
  now += swaps.times().answer - milliseconds(1);
  EXPECT_TRUE(swaps.Late(now).empty());
  now += milliseconds(1);
  EXPECT_EQ(swaps.Late(now), std::vector<uint64_t>{1});
  EXPECT_TRUE(swaps.Late(now).empty());
  EXPECT_EQ(Want(150), Hope::kComing);
  EXPECT_EQ(asks[0].worker, 2u);
}

TEST_F(SwapsTest, WhoCannotBeHeardIsNotLate) {
  Want(150);
  now += seconds(5);
  swaps.Extend(1, now);
  EXPECT_TRUE(swaps.Late(now).empty());
}

TEST_F(SwapsTest, PartOfItIsAskedForOnlyWhereThatHelps) {
  EXPECT_EQ(Want(300, 100), Hope::kNone);
  EXPECT_EQ(Want(300, 100, true), Hope::kComing);
  EXPECT_EQ(asks[0].packet.chunks.size(), 1u);
  swaps.Remove(1);
  EXPECT_EQ(Want(500, 100, true), Hope::kNone) << "all of it is not there";
  EXPECT_EQ(Want(300, 50, true), Hope::kNone) << "nothing fits";
}

}  // namespace
}  // namespace longwire::keeper
