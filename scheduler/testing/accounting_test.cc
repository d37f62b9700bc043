#include "scheduler/accounting.h"

#include <gtest/gtest.h>

#include "scheduler/core.h"

namespace longwire::scheduler {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(SlidingSum, ForgetsWhatIsOlderThanItsWindow) {
  SlidingSum sum(seconds(60));
  sum.Add(seconds(10), milliseconds(500));
  sum.Add(seconds(40), milliseconds(200));
  EXPECT_EQ(sum.Sum(seconds(40)), milliseconds(700));
  EXPECT_EQ(sum.Sum(seconds(69)), milliseconds(700));
  EXPECT_EQ(sum.Sum(seconds(70)), milliseconds(200));
  EXPECT_EQ(sum.Sum(seconds(100)), Time{0});
  sum.Add(seconds(100), milliseconds(1));  // the place of the one at 40 s
  EXPECT_EQ(sum.Sum(seconds(100)), milliseconds(1));
}

TEST(Accounting, SharesAreOfTheWindowAndTotalsOfEverything) {
  Accounting accounting(seconds(60));
  GpuAccount& a = accounting.OfTenant("a");
  GpuAccount& b = accounting.OfTenant("b");
  GpuAccount& device = accounting.OfDevice(0);
  EXPECT_EQ(accounting.Share(seconds(0), a), 0);
  accounting.Add(seconds(1), a, device, seconds(9));
  accounting.Add(seconds(50), b, device, seconds(3));
  EXPECT_DOUBLE_EQ(accounting.Share(seconds(50), a), 0.75);
  EXPECT_DOUBLE_EQ(accounting.Busy(seconds(50), device), 0.2);
  EXPECT_DOUBLE_EQ(accounting.Share(seconds(90), a), 0);
  EXPECT_DOUBLE_EQ(accounting.Share(seconds(90), b), 1);
  EXPECT_EQ(a.total, seconds(9));
  EXPECT_EQ(device.total, seconds(12));
}

// What one session of the tenant is credited with after these reports, one a second.
Time Credited(const std::vector<Time>& reports) {
  const auto policy = MakePolicy("strict_priority");
  Core core(*policy, Options{});
  SessionInfo info;
  info.id = 1;
  info.tenant = "a";
  info.devices = {0};
  core.On(seconds(0), SessionOpened{info});
  Time now{0};
  for (Time gpu_time : reports) {
    core.On(now += seconds(1), ActivityReported{1, 0, Activity::kRunning, gpu_time});
  }
  return core.snapshot().tenants.at(0).gpu_time;
}

TEST(Accounting, AReportIsBelievedNoFurtherThanTimeHasPassed) {
  EXPECT_EQ(Credited({milliseconds(500), milliseconds(1500)}), milliseconds(1500));
  EXPECT_EQ(Credited({seconds(100)}), seconds(1));
  EXPECT_EQ(Credited({kForever, kForever}), seconds(2));
  EXPECT_EQ(Credited({milliseconds(1500), milliseconds(1500)}), milliseconds(1500));
  EXPECT_EQ(Credited({milliseconds(500), milliseconds(100), Time::min()}), milliseconds(500));
}

TEST(Accounting, ATenantKeepsItsTotalAfterItsSessionsEnd) {
  const auto policy = MakePolicy("strict_priority");
  Core core(*policy, Options{});
  SessionInfo info;
  info.id = 1;
  info.tenant = "a";
  info.devices = {0};
  core.On(seconds(0), SessionOpened{info});
  core.On(seconds(1), ActivityReported{1, 0, Activity::kIdle, milliseconds(700)});
  core.On(seconds(2), SessionClosed{1});
  core.On(seconds(3), SessionOpened{info});
  core.On(seconds(4), ActivityReported{1, 0, Activity::kIdle, milliseconds(200)});
  const Snapshot snapshot = core.snapshot();
  EXPECT_EQ(snapshot.tenants.at(0).gpu_time, milliseconds(900));
  EXPECT_EQ(snapshot.seats.at(0).gpu_time, milliseconds(200));
}

}  // namespace
}  // namespace longwire::scheduler
