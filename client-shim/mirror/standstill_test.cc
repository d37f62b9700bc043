#include "client-shim/mirror/standstill.h"

#include <gtest/gtest.h>

namespace longwire::shim {
namespace {

using std::chrono::milliseconds;

class StandstillTest : public ::testing::Test {
 protected:
  // Work that stands still at the position.
  void Pass(int ms, uint64_t position = 1) {
    now_ += milliseconds(ms);
    standstill_.Observe({{1, position}}, now_);
  }
  bool IsDue() const { return standstill_.IsDue(now_); }
  void State() { standstill_.NoteState(now_); }

  Standstill::Clock::time_point now_{std::chrono::hours(1)};
  Standstill standstill_{{milliseconds(500), milliseconds(1), milliseconds(500), true}};
};

TEST_F(StandstillTest, WorkMustStandStillForTheFirstPause) {
  Pass(0);
  EXPECT_FALSE(IsDue());
  Pass(499);
  EXPECT_FALSE(IsDue());
  Pass(1, 2);
  Pass(499, 2);
  EXPECT_FALSE(IsDue()) << "it had moved";
  Pass(1, 2);
  EXPECT_TRUE(IsDue());
  standstill_.Observe({}, now_);
  now_ += milliseconds(1000);
  EXPECT_FALSE(IsDue()) << "nothing runs";
  EXPECT_TRUE(standstill_.IsOver(now_));
  Pass(0);
  EXPECT_FALSE(standstill_.IsOver(now_));
}

TEST_F(StandstillTest, AnAnswerShortensThePause) {
  Pass(0);
  Pass(500);
  State();
  EXPECT_FALSE(IsDue());
  standstill_.NoteAnswer();
  Pass(1);
  EXPECT_TRUE(IsDue());
}

TEST_F(StandstillTest, WhatWasNotAskedIsNoAnswer) {
  Pass(0);
  standstill_.NoteAnswer();
  Pass(499);
  EXPECT_FALSE(IsDue());
}

TEST_F(StandstillTest, AStateThatTakesLongIsFollowedByARest) {
  Pass(0);
  Pass(500);
  standstill_.NoteState(now_, milliseconds(20));
  standstill_.NoteAnswer();
  Pass(19);
  EXPECT_FALSE(IsDue());
  Pass(1);
  EXPECT_TRUE(IsDue());
}

TEST_F(StandstillTest, WorkThatMovesSoonIsAnAnswer) {
  Pass(0);
  Pass(500);
  State();
  Pass(20, 2);
  Pass(1, 2);
  EXPECT_TRUE(IsDue());
}

TEST_F(StandstillTest, WorkThatMovesLaterIsNone) {
  Pass(0);
  Pass(500);
  State();
  Pass(200, 2);
  Pass(400, 2);
  EXPECT_FALSE(IsDue());
}

TEST_F(StandstillTest, StatesWithoutAnswerComeLessAndLess) {
  Pass(0);
  Pass(500);
  State();
  standstill_.NoteAnswer();
  Pass(1);
  State();
  for (const int pause : {1, 2, 4, 8, 16, 32, 64, 128, 256, 500, 500}) {
    Pass(pause - 1);
    EXPECT_FALSE(IsDue());
    Pass(1);
    ASSERT_TRUE(IsDue()) << pause;
    State();
  }
}

}  // namespace
}  // namespace longwire::shim
