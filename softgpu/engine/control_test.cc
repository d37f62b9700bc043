// Control flow, calls, variables, printing, allocation, and what lanes and blocks exchange.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <numeric>
#include <set>

#include "softgpu/engine/test_device.h"

namespace softgpu::testing {
namespace {

class Control : public ::testing::TestWithParam<const char*> {
 protected:
  Device device{std::string(GetParam()) + "/control"};
};
INSTANTIATE_TEST_SUITE_P(Targets, Control, ::testing::Values("sm_75", "sm_90"));

TEST_P(Control, ReadsInitialisedVariables) {
  Array<int> out(40);
  EXPECT_RUNS(device.Run("read_variables", {1}, {40}, out));
  const int grid[3][2] = {{1, 2}, {3, 4}, {5, 6}};
  for (int i = 0; i < 40; ++i) EXPECT_EQ(out[i], 10 * (i % 4 + 1) + 5 + grid[i % 3][i & 1]);
  const GlobalInfo& counter = device.FindGlobal("counter");
  EXPECT_EQ(counter.bytes, 4u);
  EXPECT_FALSE(counter.constant);
  EXPECT_TRUE(device.FindGlobal("table").constant);
  EXPECT_EQ(*reinterpret_cast<int*>(counter.address), 5);
}

TEST_P(Control, Switches) {
  const int n = 200;
  Array<int> in(n), out(n, 5);
  for (int i = 0; i < n; ++i) in[i] = i * 7 % 10 - 1;
  in[0] = 77;
  EXPECT_RUNS(device.Run("choose", {2}, {128}, in, out, n));
  for (int i = 0; i < n; ++i) {
    int x = in[i];
    const int expected[] = {100, 77, 2 ^ 0x55, -4, 128, 77, -6, 1};
    ASSERT_EQ(out[i], x >= 0 && x <= 7 ? expected[x] : -1) << x;
  }
}

TEST_P(Control, Recurses) {
  Array<int> out(64);
  EXPECT_RUNS(device.Run("recurse", {1}, {64}, out));
  const int fibonacci[] = {0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144};
  for (int i = 0; i < 64; ++i) EXPECT_EQ(out[i], fibonacci[i % 13]) << i;
}

TEST_P(Control, CallsVirtualFunctionsAndPointers) {
  Array<int> out(64);
  EXPECT_RUNS(device.Run("virtual_calls", {1}, {64}, out));
  for (int i = 0; i < 64; ++i) EXPECT_EQ(out[i], i % 3 == 0 ? i * i : 10 * i);
  EXPECT_RUNS(device.Run("through_pointers", {1}, {64}, out));
  for (int i = 0; i < 64; ++i) EXPECT_EQ(out[i], i % 3 == 0 ? i + 7 : i % 3 == 1 ? i * 7 : i - 7);
}

struct Big {
  int values[20];
};

TEST_P(Control, PassesStructuresByValue) {
  Big big;
  for (int i = 0; i < 20; ++i) big.values[i] = 3 * i + 1;
  Array<int> out(50);
  const int index = 3;
  EXPECT_RUNS(device.Run("by_value", {1}, {50}, big, out, index));
  for (int t = 0; t < 50; ++t) {
    Big c = big;
    for (int& v : c.values) v = 2 * v + t;
    c.values[(index + t) % 20] += big.values[index];
    int sum = 0;
    for (int i = 0; i < 20; ++i) sum += c.values[(i * index) % 20];
    EXPECT_EQ(out[t], sum) << t;
  }
}

TEST_P(Control, Prints) {
  std::fflush(stdout);
  int saved = dup(1);
  std::unique_ptr<FILE, int (*)(FILE*)> file(std::tmpfile(), std::fclose);
  ASSERT_NE(file, nullptr);
  dup2(fileno(file.get()), 1);
  Status status = device.Run("say", {1}, {3}, 2, 1.5);
  dup2(saved, 1);
  close(saved);
  ASSERT_EQ(std::fseek(file.get(), 0, SEEK_SET), 0);
  char text[512] = {};
  size_t bytes = std::fread(text, 1, sizeof text - 1, file.get());
  EXPECT_EQ(status.code, 0) << status.message;
  EXPECT_EQ(std::string(text, bytes),
            "thread 0 of 3: text  0.00 123456789abe a%\n"
            "thread 1 of 3: text  1.50 123456789abe b%\n"
            "thread 2 of 3: text  3.00 123456789abe c%\n");
}

TEST_P(Control, VotesMatchesAndShuffles) {
  Array<int> in(32);
  Array<unsigned> out(32 * 6);
  for (int i = 0; i < 32; ++i) in[i] = i % 7;
  EXPECT_RUNS(device.Run("votes", {1}, {32}, in, out));
  unsigned ballot = 0, count = 0;
  for (int i = 0; i < 32; ++i) {
    if (in[i] > 3) ballot |= 1u << i, ++count;
  }
  for (int i = 0; i < 32; ++i) {
    unsigned same = 0;
    for (int j = 0; j < 32; ++j) same |= in[j] == in[i] ? 1u << j : 0;
    EXPECT_EQ(out[i * 6], ballot);
    EXPECT_EQ(out[i * 6 + 1], 1u);
    EXPECT_EQ(out[i * 6 + 2], same);
    EXPECT_EQ(out[i * 6 + 3], 0xffffffffu + 1);
    EXPECT_EQ(out[i * 6 + 4], count + 2000);
    unsigned shuffled = static_cast<unsigned>((i & 16) | ((i ^ 5) & 15));
    EXPECT_EQ(out[i * 6 + 5], shuffled + (i & 1 ? 16000 : 0)) << i;
  }
}

TEST_P(Control, CooperativeGroupTiles) {
  Array<int> out(64);
  EXPECT_RUNS(device.Run("groups", {1}, {64}, out));
  for (int i = 0; i < 64; ++i) {
    int sum = 8 * (i / 8 * 8) + 28;
    if (i % 2 == 1) sum += 1000 * (i % 32 / 2) + 100000 * 16;
    EXPECT_EQ(out[i], sum) << i;
  }
}

TEST_P(Control, Atomics) {
  const unsigned n = 8 * 96;
  Array<int> i32(4, 0);
  Array<unsigned> u32(5, 0);
  Array<unsigned long long> u64(3, 0);
  Array<float> f32(1, 0);
  Array<double> f64(1, 0);
  u32[0] = ~0u;
  EXPECT_RUNS(device.Run("atomics", {8}, {96}, i32, u32, u64, f32, f64));
  int sum = n * (n - 1) / 2;
  EXPECT_EQ(i32[0], sum);
  EXPECT_EQ(i32[1], -sum);
  EXPECT_EQ(i32[2], -static_cast<int>(n - 1));
  EXPECT_EQ(i32[3], static_cast<int>(n - 1));
  EXPECT_EQ(u32[0], 0u);
  EXPECT_EQ(u32[1], ~0u);
  unsigned all = 0, up = 0, down = 0;
  for (unsigned t = 0; t < n; ++t) {
    all ^= t;
    up = up >= 6 ? 0 : up + 1;
    down = down == 0 || down > 6 ? 6 : down - 1;
  }
  EXPECT_EQ(u32[2], all);
  EXPECT_EQ(u32[3], up);
  EXPECT_EQ(u32[4], down);
  EXPECT_EQ(u64[0], 0x100000001ULL * static_cast<unsigned>(sum));
  EXPECT_EQ(u64[1], 0x100000001ULL * (n - 1));
  EXPECT_EQ(u64[2], 3ULL * n);
  EXPECT_EQ(f32[0], 0.5f * n);
  EXPECT_EQ(f64[0], 0.25 * n);
}

TEST_P(Control, NamedBarriers) {
  Array<int> out(32);
  EXPECT_RUNS(device.Run("named_barriers", {1}, {64}, out));
  for (int i = 0; i < 32; ++i) EXPECT_EQ(out[i], 3 * (31 - i));
}

TEST_P(Control, DescribesKernels) {
  const KernelInfo& info = device.Find("by_value");
  ASSERT_EQ(info.parameters.size(), 3u);
  EXPECT_EQ(info.parameters[0].size, 80u);
  EXPECT_EQ(info.parameters[1].offset, 80u);
  EXPECT_EQ(info.parameters[2].offset, 88u);
  EXPECT_EQ(info.parameter_bytes, 92u);
  EXPECT_GE(info.local_bytes_per_thread, 80u);
  EXPECT_EQ(info.target, std::string(GetParam()) == "sm_75" ? 75 : 90);
  EXPECT_EQ(device.Find("named_barriers").static_shared_bytes, 128u);
}

}  // namespace
}  // namespace softgpu::testing
