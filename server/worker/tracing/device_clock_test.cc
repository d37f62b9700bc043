// The device's clock on the host's: from what must be so, with drift, over long times.
#include "server/worker/tracing/device_clock.h"

#include <gtest/gtest.h>

namespace longwire::worker {
namespace {

// Events of a device whose clock is its own: the handle is the time there.
CUevent At(uint64_t nanoseconds) { return reinterpret_cast<CUevent>(nanoseconds); }

CUresult Elapsed(float* milliseconds, CUevent from, CUevent to) {
  auto passed = reinterpret_cast<intptr_t>(to) - reinterpret_cast<intptr_t>(from);
  *milliseconds = static_cast<float>(static_cast<double>(passed) / 1e6);
  return CUDA_SUCCESS;
}

class DeviceClockTest : public testing::Test {
 protected:
  // The device's time 5'000'000 is the host's 1'000'000'000.
  static constexpr uint64_t kDevice = 5'000'000, kHost = 1'000'000'000;

  DeviceClockTest() { driver_.cuEventElapsedTime_v2 = &Elapsed; }

  DeviceClock::Interval Locate(uint64_t started, uint64_t ended, uint64_t issued, uint64_t seen) {
    DeviceClock::Interval interval;
    EXPECT_TRUE(clock_.Locate(
        At(started), At(ended), issued, [&] { return seen; }, &interval));
    return interval;
  }

  DriverTable driver_{};
  DeviceClock clock_{driver_, At(kDevice), kHost - 3000};  // the record took 3 us
};

TEST_F(DeviceClockTest, ACallLiesBetweenItsIssueAndItsEndThatWasSeen) {
  auto at = Locate(kDevice + 10'000, kDevice + 60'000, kHost + 8'000, kHost + 70'000);
  EXPECT_EQ(at.started, kHost + 8'000);  // it cannot have started before
  EXPECT_EQ(at.ended, kHost + 58'000);
  EXPECT_EQ(at.error, 12'000u) << "it was seen 12 us after that end";
}

TEST_F(DeviceClockTest, EachCallNarrowsItDown) {
  Locate(kDevice + 10'000, kDevice + 60'000, kHost + 8'000, kHost + 70'000);
  // Seen at once, and issued just before it began.
  auto at = Locate(kDevice + 100'000, kDevice + 200'000, kHost + 99'000, kHost + 200'500);
  EXPECT_EQ(at.started, kHost + 99'000);
  EXPECT_EQ(at.error, 1'500u);
}

TEST_F(DeviceClockTest, ADeviceWhoseClockRunsFastIsNotAheadOfWhatWasSeen) {
  Locate(kDevice + 10'000, kDevice + 20'000, kHost + 9'900, kHost + 20'100);
  // A second later its clock is 50 us ahead.
  const uint64_t later = 1'000'000'000, ahead = 50'000;
  auto at = Locate(kDevice + later + ahead, kDevice + later + ahead + 10'000, kHost + later - 5'000,
                   kHost + later + 10'400);
  EXPECT_LE(at.ended, kHost + later + 10'400);
  EXPECT_GE(at.started, kHost + later - 5'000);
}

TEST_F(DeviceClockTest, DistancesFromAFarAnchorKeepTheirDigits) {
  uint64_t now = 0;
  for (int second = 0; second < 3000; ++second) {
    now += 1'000'000'700;
    Locate(kDevice + now, kDevice + now + 10'000, kHost + now - 2'000, kHost + now + 11'000);
    CUevent event = At(kDevice + now + 10'000);
    clock_.Renew(&event);
  }
  auto at = Locate(kDevice + now + 50'000, kDevice + now + 51'000, kHost + now + 48'000,
                   kHost + now + 52'000);
  // Of an anchor 50 minutes back a float has steps of a quarter of a millisecond.
  EXPECT_NEAR(static_cast<double>(at.started), static_cast<double>(kHost + now + 48'000), 4'000);
}

// A software device on a busy processor.
TEST_F(DeviceClockTest, AnEventMayBeNotedAfterTheEndWasSeen) {
  static int asked;
  asked = 0;
  driver_.cuEventElapsedTime_v2 = [](float* milliseconds, CUevent from, CUevent to) {
    return ++asked < 5 ? CUDA_ERROR_NOT_READY : Elapsed(milliseconds, from, to);
  };
  DeviceClock::Interval at;
  // Whoever asks before the event is noted gets a time that lies before it.
  auto now = [] { return kHost + (asked < 5 ? 50'000 : 61'000); };
  ASSERT_TRUE(clock_.Locate(At(kDevice + 10'000), At(kDevice + 60'000), kHost + 8'000, now, &at));
  EXPECT_LE(at.ended, kHost + 60'000);
  EXPECT_GE(at.ended + at.error, kHost + 60'000);
}

TEST_F(DeviceClockTest, BehindItsEndTheDriverIsNotAsked) {
  EXPECT_EQ(clock_.End(), At(kDevice));
  driver_.cuEventElapsedTime_v2 = [](float*, CUevent, CUevent) {
    ADD_FAILURE() << "the events are gone";
    return CUDA_SUCCESS;
  };
  DeviceClock::Interval interval;
  EXPECT_FALSE(clock_.Locate(
      At(1), At(2), 3, [] { return uint64_t{4}; }, &interval));
  CUevent event = At(9);
  clock_.Renew(&event);
  EXPECT_EQ(event, At(9));
}

TEST_F(DeviceClockTest, WhatTheDriverCannotTellIsNotTold) {
  driver_.cuEventElapsedTime_v2 = [](float*, CUevent, CUevent) {
    return CUDA_ERROR_INVALID_HANDLE;
  };
  DeviceClock::Interval interval;
  EXPECT_FALSE(clock_.Locate(
      At(1), At(2), 3, [] { return uint64_t{4}; }, &interval));
}

}  // namespace
}  // namespace longwire::worker
