// Kernels that launch kernels: each once, in order, within bounds.
#include <gtest/gtest.h>

#include "softgpu/engine/test_device.h"

namespace softgpu::testing {
namespace {

class Children : public ::testing::TestWithParam<const char*> {
 protected:
  Device device{std::string(GetParam()) + "/children"};

  static std::vector<int> Said(Array<int>& order) {
    return {order.data() + 1, order.data() + 1 + order[0]};
  }
};
INSTANTIATE_TEST_SUITE_P(Targets, Children, ::testing::Values("sm_75", "sm_90"));

TEST_P(Children, EachRunsOnce) {
  Array<unsigned> counts(1024);
  EXPECT_RUNS(device.Run("LaunchEach", {8}, {128}, counts));
  for (size_t i = 0; i < counts.size(); ++i) ASSERT_EQ(counts[i], 1u) << i;
}

TEST_P(Children, OrderIsThatOfLaunchesAndTailsAreLast) {
  Array<int> order(32);
  EXPECT_RUNS(device.Run("Grandparent", {1}, {1}, order));
  EXPECT_EQ(Said(order), (std::vector<int>{0, 10, 11, 19, 20, 21, 29, 90, 91, 99}));
}

TEST_P(Children, DepthIsBounded) {
  Array<int> out(2);
  EXPECT_RUNS(device.Run("Descend", {1}, {1}, out));
  EXPECT_EQ(out[0], 25);  // the first and 24 below it
  EXPECT_EQ(out[1], 65);  // the argument of the last kernel, which wrote it last
}

TEST_P(Children, PendingLaunchesAreBounded) {
  Array<unsigned> counts(3);
  EXPECT_RUNS(device.Run("LaunchMany", {1}, {1}, counts, 2100));
  EXPECT_EQ(counts[0], 2048u);
  EXPECT_EQ(counts[1], 69u);
  EXPECT_EQ(counts[2], 52u);
  // All of them were given back.
  EXPECT_RUNS(device.Run("LaunchMany", {1}, {1}, counts, 2048));
  EXPECT_EQ(counts[0], 4096u);
  EXPECT_EQ(counts[2], 52u);
}

TEST_P(Children, ErrorsAreTheThreadsOwn) {
  Array<int> out(12);
  EXPECT_RUNS(device.Run("MakeErrors", {1}, {4}, out));
  const int wanted[] = {0, 9, 9, 400};
  for (int thread = 0; thread < 4; ++thread) {
    EXPECT_EQ(out[3 * thread], wanted[thread]);
    EXPECT_EQ(out[3 * thread + 1], wanted[thread]);
    EXPECT_EQ(out[3 * thread + 2], 0);
  }
  auto* text = reinterpret_cast<const char*>(device.FindGlobal("text").address);
  EXPECT_STREQ(text, "invalid resource handle");
}

TEST_P(Children, CopiesAndFillsKeepTheirPlace) {
  Array<int> data(3);
  EXPECT_RUNS(device.Run("CopyAndFill", {1}, {1}, data));
  EXPECT_EQ(data[0], 0x01010102);
  EXPECT_EQ(data[1], 0x01010101);
  EXPECT_EQ(data[2], 0x01010102);
  EXPECT_EQ(device.Run("FillAt", {1}, {1}, uint64_t{0}).code, 700);
}

TEST_P(Children, AFaultEndsTheLaunch) {
  Array<int> order(8);
  Status status = device.Run("LaunchFault", {1}, {1}, order);
  EXPECT_EQ(status.code, 700);
  EXPECT_NE(status.message.find("Sayer"), std::string::npos) << status.message;
  EXPECT_EQ(Said(order), std::vector<int>{1});
}

TEST_P(Children, AnEndlessFamilyCanBeCancelled) {
  int asked = 0;
  device.cancelled = [&asked] { return ++asked > 1000; };
  EXPECT_EQ(device.Run("Breed", {1}, {1}).code, 719);
  EXPECT_LT(asked, 2000);
}

TEST_P(Children, UnknownInstructionsAreFaults) {
  Array<int> out(2);
  Status status = device.Run("LaunchUnknown", {1}, {1}, out);
  EXPECT_EQ(status.code, 715);
  EXPECT_NE(status.message.find("vadd"), std::string::npos) << status.message;
}

}  // namespace
}  // namespace softgpu::testing
