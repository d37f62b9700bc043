// The integral of leased memory over time, from events and from comparisons.
#include "server/daemon/usage/memory_meter.h"

#include <gtest/gtest.h>

namespace longwire::daemon {
namespace {

using keeper::MemoryEvent;
using keeper::MemoryEventKind;

constexpr uint64_t kHour = 3'600'000'000;  // µs
constexpr uint64_t kStart = 1'000 * kHour;

MemoryEvent Event(uint64_t hours, MemoryEventKind kind, uint64_t session, uint64_t bytes) {
  return {0, kStart + hours * kHour, static_cast<uint32_t>(kind), session, bytes};
}

class MemoryMeterTest : public testing::Test {
 protected:
  void SetUp() override { meter_.Begin(7, kStart); }
  void Apply(std::initializer_list<MemoryEvent> events, int32_t device = 0) {
    meter_.Apply(device, std::vector<MemoryEvent>(events));
  }
  MemoryMeter meter_;
};

TEST_F(MemoryMeterTest, BytesTimesHours) {
  Apply({Event(1, MemoryEventKind::kLease, 7, 100), Event(3, MemoryEventKind::kLease, 7, 50),
         Event(4, MemoryEventKind::kReturn, 7, 100)});
  // 2 h of 100, 1 h of 150, 6 h of 50.
  meter_.Stop(7, kStart + 10 * kHour);
  MemoryMeter::Reading reading = meter_.Take(7, kStart + 99 * kHour);
  EXPECT_DOUBLE_EQ(reading.byte_hours, 200 + 150 + 300);
  EXPECT_FALSE(reading.estimated);
  EXPECT_TRUE(meter_.empty());
}

TEST_F(MemoryMeterTest, DevicesAreAddedAndSessionsKeptApart) {
  meter_.Begin(8, kStart);
  Apply({Event(0, MemoryEventKind::kLease, 7, 10), Event(0, MemoryEventKind::kLease, 8, 1000)});
  Apply({Event(1, MemoryEventKind::kLease, 7, 5), Event(1, MemoryEventKind::kLease, 99, 5)}, 1);
  EXPECT_DOUBLE_EQ(meter_.Take(7, kStart + 2 * kHour).byte_hours, 20 + 5);
  EXPECT_DOUBLE_EQ(meter_.Take(8, kStart + 2 * kHour).byte_hours, 2000);
  EXPECT_TRUE(meter_.empty()) << "session 99 was never begun";
}

TEST_F(MemoryMeterTest, WhatIsInTheHostsMemoryDoesNotCount) {
  Apply({Event(0, MemoryEventKind::kLease, 7, 10), Event(1, MemoryEventKind::kSwapOut, 7, 10),
         Event(5, MemoryEventKind::kSwapIn, 7, 10)});
  EXPECT_DOUBLE_EQ(meter_.Take(7, kStart + 6 * kHour).byte_hours, 20);
}

TEST_F(MemoryMeterTest, ReasonsOfAReturnAreNotReturnedTwice) {
  Apply({Event(0, MemoryEventKind::kLease, 7, 10), Event(1, MemoryEventKind::kReturn, 7, 4),
         Event(1, MemoryEventKind::kDrain, 7, 4), Event(1, MemoryEventKind::kUnused, 7, 4)});
  EXPECT_DOUBLE_EQ(meter_.Take(7, kStart + 2 * kHour).byte_hours, 10 + 6);
}

TEST_F(MemoryMeterTest, NothingCountsAfterItsEnd) {
  Apply({Event(0, MemoryEventKind::kLease, 7, 10)});
  meter_.Stop(7, kStart + 2 * kHour);
  Apply({Event(3, MemoryEventKind::kLease, 7, 1000), Event(4, MemoryEventKind::kReturn, 7, 1010)});
  EXPECT_DOUBLE_EQ(meter_.Take(7, kStart + 9 * kHour).byte_hours, 20);
}

TEST_F(MemoryMeterTest, WhatItHadBeforeItGoesOnForAnotherSessionDoesNotCount) {
  Apply({Event(0, MemoryEventKind::kLease, 7, 10)});
  meter_.BeginAt(7, kStart + 2 * kHour);
  Apply({Event(1, MemoryEventKind::kLease, 7, 5)});  // that is known late
  Apply({Event(1, MemoryEventKind::kLease, 7, 100)}, 1);
  EXPECT_DOUBLE_EQ(meter_.Take(7, kStart + 5 * kHour).byte_hours, 3 * 15 + 3 * 100);
}

TEST_F(MemoryMeterTest, EventsFromBeforeItsEndMayComeLate) {
  meter_.Stop(7, kStart + 2 * kHour);
  Apply({Event(1, MemoryEventKind::kLease, 7, 10)});
  EXPECT_DOUBLE_EQ(meter_.Take(7, kStart + 9 * kHour).byte_hours, 10);
}

TEST_F(MemoryMeterTest, AComparisonThatAgreesChangesNothing) {
  Apply({Event(0, MemoryEventKind::kLease, 7, 10)});
  meter_.Compare(0, {{7, 10}}, kStart + kHour);
  MemoryMeter::Reading reading = meter_.Take(7, kStart + 2 * kHour);
  EXPECT_DOUBLE_EQ(reading.byte_hours, 20);
  EXPECT_FALSE(reading.estimated);
}

TEST_F(MemoryMeterTest, LostEventsAreSharedOutOverTheTimeAndSaidToBeEstimated) {
  Apply({Event(0, MemoryEventKind::kLease, 7, 10)});
  meter_.Compare(0, {{7, 10}}, kStart + 2 * kHour);
  meter_.Compare(0, {{7, 30}}, kStart + 4 * kHour);  // from 10 to 30 in 2 h
  MemoryMeter::Reading reading = meter_.Take(7, kStart + 5 * kHour);
  EXPECT_DOUBLE_EQ(reading.byte_hours, 20 + 40 + 30);
  EXPECT_TRUE(reading.estimated);
}

TEST_F(MemoryMeterTest, AClockThatIsSetBackTakesNothingAway) {
  Apply({Event(2, MemoryEventKind::kLease, 7, 10), Event(1, MemoryEventKind::kReturn, 7, 10)});
  EXPECT_DOUBLE_EQ(meter_.Take(7, kStart + 9 * kHour).byte_hours, 0);
}

TEST_F(MemoryMeterTest, ASessionThatNobodyBeganIsEstimated) {
  EXPECT_TRUE(meter_.Take(99, kStart).estimated);
}

}  // namespace
}  // namespace longwire::daemon
