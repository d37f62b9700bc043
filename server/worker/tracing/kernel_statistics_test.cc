// What is counted of kernels: all launches, whether they go in rows or alone, and which are timed.
#include "server/worker/tracing/kernel_statistics.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>

#include "server/worker/testing/test_session.h"

namespace longwire::worker::testing {
namespace {

constexpr uint64_t kStream = 1;
constexpr int kLaunches = 4000;

std::atomic<int> events{0};

DriverTable Table(FakeDriver& driver) {
  DriverTable table = driver.table();
  table.cuOccupancyMaxActiveBlocksPerMultiprocessor = [](int* blocks, CUfunction, int, size_t) {
    *blocks = 7;
    return CUDA_SUCCESS;
  };
  table.cuFuncGetAttribute = [](int* value, CUfunction_attribute attribute, CUfunction) {
    *value = attribute == CU_FUNC_ATTRIBUTE_NUM_REGS ? 40 : 0;
    return CUDA_SUCCESS;
  };
  table.cuDeviceGetAttribute = [](int* value, CUdevice_attribute, CUdevice) {
    *value = 2048;
    return CUDA_SUCCESS;
  };
  static decltype(table.cuEventRecord) record;
  record = table.cuEventRecord;
  events = 0;
  table.cuEventRecord = [](CUevent event, CUstream stream) {
    ++events;
    return record(event, stream);
  };
  return table;
}

class KernelStatisticsTest : public ::testing::Test {
 protected:
  // All have been issued when this returns.
  void LaunchAll() {
    uint64_t last = 0;
    for (int i = 0; i < kLaunches; ++i) last = test_.Launch(kStream, 1);
    calls::lwStreamWanted wanted;
    wanted.stream = kStream;
    wanted.position = last;
    test_.Send(wanted);
    test_.ExpectProgress(kStream, last);
  }

  FakeDriver driver_;
  TestSession test_{Table(driver_), OneDevice()};
};

TEST_F(KernelStatisticsTest, EachLaunchIsCountedAndFewAreTimed) {
  auto page = statistics::Page::Create();
  ASSERT_NE(page, nullptr);
  page->kernels_on() = 1;
  test_.session->statistics().Take(page);
  test_.CreateStream(kStream);
  LaunchAll();
  statistics::KernelSlot& slot = page->kernel(0);
  ASSERT_EQ(slot.ready.load(), 1u);
  EXPECT_EQ(slot.launches.load(), static_cast<uint64_t>(kLaunches));
  EXPECT_EQ(page->kernel(1).ready.load(), 0u);
  EXPECT_EQ(slot.shape.registers, 40u);
  EXPECT_EQ(slot.shape.active_blocks, 7u);
  // Eight first ones, then one in 512 to 1,535.
  EXPECT_GE(events.load(), 2 * (8 + 2));
  EXPECT_LE(events.load(), 2 * (8 + 9) + kLaunches / 256 + 2);
}

// Of this number of launches in a second, for ten seconds, how many are timed in the last nine.
uint64_t TimedOf(uint64_t launches_per_second) {
  constexpr uint64_t kSecond = 1'000'000'000;
  TimedPace pace;
  uint64_t timed = 0, launch = 0;
  while (true) {
    const uint64_t now = kSecond + launch * kSecond / launches_per_second;
    launch += pace.Distance(now);
    if (now > 11 * kSecond) return timed;
    if (now > 2 * kSecond) ++timed;
  }
}

TEST(TimedPaceTest, OneInAThousandAndAboutAHundredASecond) {
  EXPECT_NEAR(9 * 10'000 / 1024, TimedOf(10'000), 10);
  for (uint64_t launches : {200'000, 1'000'000, 5'000'000}) {
    EXPECT_GE(TimedOf(launches), 9 * 30u) << launches;
    EXPECT_LE(TimedOf(launches), 9 * 150u) << launches;
  }
}

TEST_F(KernelStatisticsTest, WithoutAPageNothingIsCountedAndNothingMore) {
  test_.CreateStream(kStream);
  LaunchAll();
  EXPECT_LE(events.load(), kLaunches / 256 + 2);  // of the samples of queueing
}

}  // namespace
}  // namespace longwire::worker::testing
