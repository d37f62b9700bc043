// What is counted of kernels: all launches, whether they go in rows or alone, and which are timed.
#include "server/worker/tracing/kernel_statistics.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>

#include "server/worker/testing/test_session.h"

namespace longwire::worker::testing {
namespace {

constexpr uint64_t kStream = 1;
constexpr int kLaunches = 4000;
constexpr int kRounds = 100;

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

TEST_F(KernelStatisticsTest, InASecondAboutAHundredAreTimed) {
  auto page = statistics::Page::Create();
  ASSERT_NE(page, nullptr);
  page->kernels_on() = 1;
  test_.session->statistics().Take(page);
  test_.CreateStream(kStream);
  const auto begun = std::chrono::steady_clock::now();
  for (int round = 0; round < kRounds; ++round) LaunchAll();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun;
  // One in a thousand would be more: the distance doubles for each that comes too soon.
  const double samples = 1.0 * kRounds * kLaunches / 256 + 2;
  EXPECT_LE(events.load() - samples, 2 * (8 + 12 + 200 * took.count())) << took.count() << " s";
}

TEST_F(KernelStatisticsTest, WithoutAPageNothingIsCountedAndNothingMore) {
  test_.CreateStream(kStream);
  LaunchAll();
  EXPECT_LE(events.load(), kLaunches / 256 + 2);  // of the samples of queueing
}

}  // namespace
}  // namespace longwire::worker::testing
