// Progress: threads, blocks and launches that wait for one another.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "softgpu/engine/test_device.h"

namespace softgpu::testing {
namespace {

class Schedule : public ::testing::TestWithParam<const char*> {
 protected:
  Device device{std::string(GetParam()) + "/control"};
};
INSTANTIATE_TEST_SUITE_P(Targets, Schedule, ::testing::Values("sm_75", "sm_90"));

TEST_P(Schedule, LockWithinAWarp) {
  Array<int> lock(1, 0), count(1, 0);
  EXPECT_RUNS(device.Run("lock_each", {2}, {128}, lock, count));
  EXPECT_EQ(count[0], 256);
  EXPECT_EQ(lock[0], 0);
}

TEST_P(Schedule, StrictLockWithinAWarp) {
  Array<int> lock(1, 0), count(1, 0);
  EXPECT_RUNS(device.Run("lock_strictly", {2}, {64}, lock, count));
  EXPECT_EQ(count[0], 128);
}

TEST_P(Schedule, BlocksWaitForALaterBlock) {
  Array<int> flag(1, 0), out(1, 0);
  EXPECT_RUNS(device.Run("wait_for_last", {20}, {64}, flag, out));
  EXPECT_EQ(out[0], 19 * 42);
}

TEST_P(Schedule, OneLaunchWaitsForAnother) {
  Array<int> flag(1, 0);
  std::atomic<int> waiting{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      ++waiting;
      Status status = device.Run("spin_for_ever", {3}, {64}, flag);
      EXPECT_EQ(status.code, 0) << status.message;
      --waiting;
    });
  }
  while (waiting < 4) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  EXPECT_EQ(waiting, 4);
  EXPECT_RUNS(device.Run("set_flag", {1}, {1}, flag));
  for (std::thread& thread : threads) thread.join();
}

TEST_P(Schedule, TimeIsLimited) {
  Array<int> flag(1, 0);
  setenv("LONGWIRE_SOFTGPU_KERNEL_SECONDS", "0.1", 1);
  Status status = device.Run("spin_for_ever", {4}, {96}, flag);
  unsetenv("LONGWIRE_SOFTGPU_KERNEL_SECONDS");
  EXPECT_EQ(status.code, 702) << status.message;
  EXPECT_NE(status.message.find("spin_for_ever"), std::string::npos) << status.message;
}

TEST_P(Schedule, CancelledLaunchEnds) {
  Array<int> flag(1, 0);
  int polls = 0;
  device.cancelled = [&] { return ++polls > 3; };
  Status status = device.Run("spin_for_ever", {2}, {32}, flag);
  EXPECT_NE(status.code, 0);
  EXPECT_GT(polls, 3);
}

TEST_P(Schedule, CooperativeGridSynchronises) {
  const int blocks = 24, threads = 96, n = blocks * threads, rounds = 12;
  Array<int> values(n), out(1, 0);
  for (int i = 0; i < n; ++i) values[i] = i * i % 101;
  std::vector<int> expected(values.data(), values.data() + n), next(n);
  for (int r = 0; r < rounds; ++r) {
    for (int i = 0; i < n; ++i) next[i] = expected[(i + 1) % n] + 1;
    expected = next;
  }
  device.cooperative = true;
  EXPECT_RUNS(device.Run("grid_rounds", {blocks}, {threads}, values, out, rounds));
  EXPECT_EQ(out[0], n);
  for (int i = 0; i < n; ++i) ASSERT_EQ(values[i], expected[i]) << i;
}

TEST_P(Schedule, CooperativeGridHasALimit) {
  Array<int> values(1), out(1);
  device.cooperative = true;
  EXPECT_EQ(device.Run("grid_rounds", {100000}, {96}, values, out, 1).code, 720);
}

}  // namespace
}  // namespace softgpu::testing
