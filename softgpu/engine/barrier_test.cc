// Barriers in shared memory (mbarrier), and bulk copies that arrive at them.
#include <gtest/gtest.h>

#include <numeric>

#include "softgpu/engine/test_device.h"

namespace softgpu::testing {
namespace {

class Barriers : public ::testing::Test {
 protected:
  Device device{"sm_90/barriers"};
};

TEST_F(Barriers, HandOverBetweenWarps) {
  const int rounds = 50;
  Array<int> out(32);
  EXPECT_RUNS(device.Run("hand_over", {1}, {64}, out, rounds));
  for (int i = 0; i < 32; ++i) {
    EXPECT_EQ(out[i], rounds * (rounds - 1) / 2 * 100 + rounds * (31 - i)) << i;
  }
}

TEST_F(Barriers, DoNotWaitForThoseThatDroppedOut) {
  Array<int> out(96, -1);
  EXPECT_RUNS(device.Run("drop_out", {1}, {96}, out));
  for (int i = 0; i < 96; ++i) EXPECT_EQ(out[i], i % 8) << i;
}

TEST_F(Barriers, WaitForBytes) {
  const unsigned rows = 7;
  Array<int> in(rows * 64), out(rows * 64), early(1);
  std::iota(in.data(), in.data() + in.size(), 1);
  EXPECT_RUNS(device.Run("fetch_rows", {1}, {64}, in, out, rows, early));
  EXPECT_EQ(early[0], 0);
  for (unsigned i = 0; i < out.size(); ++i) ASSERT_EQ(out[i], 2 * static_cast<int>(i + 1)) << i;
}

}  // namespace
}  // namespace softgpu::testing
