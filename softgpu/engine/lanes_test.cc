// Divergence, early exits, vectors, local memory and what the lanes of a warp do apart.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <set>

#include "softgpu/engine/test_device.h"

namespace softgpu::testing {
namespace {

class Lanes : public ::testing::TestWithParam<const char*> {
 protected:
  Device device{std::string(GetParam()) + "/lanes"};
};
INSTANTIATE_TEST_SUITE_P(Targets, Lanes, ::testing::Values("sm_75", "sm_90"));

TEST_P(Lanes, LeaveLoopsAtDifferentTimes) {
  const int n = 256, limit = 110;
  Array<unsigned> in(n);
  Array<int> out(n, -1);
  for (int i = 0; i < n; ++i) in[i] = static_cast<unsigned>(i * 37 + 1);
  EXPECT_RUNS(device.Run("collatz", {4}, {64}, in, out, limit));
  for (int i = 0; i < n; ++i) {
    int steps = 0;
    for (uint64_t x = in[i]; x != 1; ++steps) x = x % 2 == 0 ? x / 2 : 3 * x + 1;
    ASSERT_EQ(out[i], steps > limit ? -1 : steps) << in[i];
  }
}

TEST_P(Lanes, ThatLeftDoNotHoldUpBarriers) {
  Array<int> out(128, -1);
  EXPECT_RUNS(device.Run("leave_early", {1}, {128}, out));
  int stayed = 0;
  for (int i = 0; i < 128; ++i) stayed += i % 3 != 1;
  for (int i = 0; i < 128; ++i) EXPECT_EQ(out[i], i % 3 == 1 || i >= 64 ? -1 : stayed + 1000) << i;
}

TEST_P(Lanes, MeetAtWarpBarriersInDifferentPlaces) {
  Array<int> out(32);
  EXPECT_RUNS(device.Run("warp_halves", {1}, {32}, out));
  for (int i = 0; i < 32; ++i) EXPECT_EQ(out[i], i < 16 ? i + 216 : i + 84) << i;
}

TEST_P(Lanes, LoadAndStoreVectors) {
  struct Four {
    float x, y, z, w;
  };
  struct Small {
    int16_t x, y;
  };
  struct Wide {
    double x, y;
  };
  Array<Four> in(40), out(40);
  Array<Small> small(40), small_out(40);
  Array<Wide> wide(40), wide_out(40);
  for (int i = 0; i < 40; ++i) {
    auto f = static_cast<float>(i);
    in[i] = {f, f + 0.25f, f + 0.5f, f + 0.75f};
    small[i] = {static_cast<int16_t>(-i), static_cast<int16_t>(i * 3)};
    wide[i] = {f * 0.1, f * 0.2};
  }
  EXPECT_RUNS(device.Run("vectors", {1}, {40}, in, out, small, small_out, wide, wide_out));
  for (int i = 0; i < 40; ++i) {
    EXPECT_EQ(out[i].x, in[i].w);
    EXPECT_EQ(out[i].y, in[i].z + 1);
    EXPECT_EQ(out[i].w, in[i].x);
    EXPECT_EQ(small_out[i].x, i * 3);
    EXPECT_EQ(small_out[i].y, -i - 1);
    EXPECT_EQ(wide_out[i].x, wide[i].y);
    EXPECT_EQ(wide_out[i].y, wide[i].x * 2);
  }
}

TEST_P(Lanes, LoadAndStoreSmallVectors) {
  using Bytes = std::array<uint8_t, 4>;
  using Signed = std::array<int8_t, 2>;
  using Shorts = std::array<int16_t, 4>;
  using Ints = std::array<int, 2>;
  const int n = 40;  // a whole warp and a part of one
  Array<Bytes> a(n), b(n);
  Array<Signed> c(n), d(n);
  Array<Shorts> e(n), f(n);
  Array<Ints> g(n), h(n);
  for (int i = 0; i < n; ++i) {
    for (int k = 0; k < 4; ++k) {
      a[i][k] = static_cast<uint8_t>(i * 61 + k * 97);
      e[i][k] = static_cast<int16_t>(i * 9001 - k * 15013);
    }
    for (int k = 0; k < 2; ++k) {
      c[i][k] = static_cast<int8_t>(i * 37 - k * 55);
      g[i][k] = (i + 1) * (k - 5) * 1234567;
    }
  }
  EXPECT_RUNS(device.Run("small_vectors", {1}, {n}, a, b, c, d, e, f, g, h));
  for (int i = 0; i < n; ++i) {
    EXPECT_EQ(b[i], (Bytes{a[i][3], a[i][2], a[i][1], static_cast<uint8_t>(a[i][0] / 2)}));
    EXPECT_EQ(d[i], (Signed{c[i][1], static_cast<int8_t>(c[i][0] / 2)}));
    EXPECT_EQ(f[i], (Shorts{e[i][3], e[i][2], e[i][1], static_cast<int16_t>(e[i][0] / 2)}));
    EXPECT_EQ(h[i], (Ints{g[i][1], g[i][0] / 2}));
  }
}

// Enough threads that blocks run on several threads of the host.
TEST_P(Lanes, SeeVectorsWhole) {
  const uint32_t pairs = 32;
  for (int kind = 0; kind < 4; ++kind) {
    for (uint32_t lanes : {0xffffffffu, 0x5a5affffu}) {
      Array<uint32_t> vectors(pairs * 32 * 4, 0), counts(pairs * 2, 0), bad(1, 0);
      EXPECT_RUNS(device.Run("race_for_vectors", {pairs * 2}, {32}, vectors, kind, 4000, lanes,
                             counts, bad));
      EXPECT_EQ(bad[0], 0u) << kind << " " << std::hex << lanes;
    }
  }
}

TEST_P(Lanes, KeepWhatTheirInstructionsNeedInBetween) {
  Array<unsigned> bad(1, 0);
  EXPECT_RUNS(device.Run("long_apart", {4}, {64}, bad, 200));
  EXPECT_EQ(bad[0], 0u);
}

TEST_P(Lanes, SortInLocalMemory) {
  const int threads = 70;
  Array<unsigned char> in(threads * 24), out(threads * 24);
  for (int i = 0; i < threads * 24; ++i) in[i] = static_cast<unsigned char>(i * i * 31 + i);
  EXPECT_RUNS(device.Run("sort_locally", {1}, {threads}, in, out));
  for (int t = 0; t < threads; ++t) {
    std::vector<unsigned char> expected(in.data() + t * 24, in.data() + t * 24 + 24);
    std::sort(expected.begin(), expected.end());
    ASSERT_TRUE(std::equal(expected.begin(), expected.end(), out.data() + t * 24)) << t;
  }
}

TEST_P(Lanes, CopyToSharedMemory) {
  Array<int> in(256), out(256);
  std::iota(in.data(), in.data() + 256, 7);
  EXPECT_RUNS(device.Run("copy_async", {1}, {256}, in, out));
  for (int i = 0; i < 256; ++i) ASSERT_EQ(out[i], 262 - i);
}

TEST_P(Lanes, AddHalvesAtomically) {
  Array<_Float16> pair(2), one(1);
  Array<double> d(1);
  Array<float> f(1);
  EXPECT_RUNS(device.Run("half_atomics", {4}, {64}, pair, one, d, f));
  EXPECT_EQ(static_cast<float>(pair[0]), 256);
  EXPECT_EQ(static_cast<float>(pair[1]), 128);
  EXPECT_EQ(static_cast<float>(one[0]), 64);
  EXPECT_EQ(d[0], 384);
  EXPECT_EQ(f[0], 512);
}

TEST_P(Lanes, SpinUntilAllHaveCome) {
  const int n = 6 * 64;
  Array<int> value(1, 0), out(n);
  EXPECT_RUNS(device.Run("standard_atomics", {6}, {64}, value, out));
  EXPECT_EQ(value[0], n);
  EXPECT_EQ(std::set<int>(out.data(), out.data() + n).size(), static_cast<size_t>(n));
}

TEST_P(Lanes, ReduceInGroups) {
  Array<int> in(64), out(64 * 3);
  for (int i = 0; i < 64; ++i) in[i] = i * 29 % 64;
  EXPECT_RUNS(device.Run("reduce_groups", {1}, {64}, in, out));
  for (int i = 0; i < 64; ++i) {
    const int* warp = in.data() + i / 32 * 32;
    int even = 0;
    for (int j = 0; j < 32; ++j) even += warp[j] % 2 == 0 ? warp[j] : 0;
    EXPECT_EQ(out[i * 3], std::accumulate(warp, warp + 32, 0));
    EXPECT_EQ(out[i * 3 + 1], *std::max_element(warp, warp + 32));
    EXPECT_EQ(out[i * 3 + 2], in[i] % 2 == 0 ? even : -1) << i;
  }
}

TEST_P(Lanes, AskEachForItself) {
  Array<int> in(32), out(32);
  for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<int>(i * i % 7);
  EXPECT_RUNS(device.Run("count_below", {1}, {32}, in, out));
  int below = 0;
  for (size_t i = 0; i < in.size(); ++i) {
    EXPECT_EQ(out[i], below) << i;
    below += in[i] % 2;
  }
}

TEST_P(Lanes, KnowTheSpaceOfAnAddress) {
  Array<int> global(1, 30), out(3);
  EXPECT_RUNS(device.Run("spaces", {1}, {3}, global, out));
  EXPECT_EQ(out[0], 1 + 500);
  EXPECT_EQ(out[1], 2 + 500);
  EXPECT_EQ(out[2], 4 + 3500);
}

TEST_P(Lanes, OfSeveralGroupsMeetAtOneInstruction) {
  Array<int> in(32);
  Array<unsigned> out(32 * 5);
  for (int i = 0; i < 32; ++i) in[i] = i * i % 7;
  EXPECT_RUNS(device.Run("separate_groups", {1}, {32}, in, out));
  for (unsigned i = 0; i < 32; ++i) {
    unsigned mates = 0, sum = 0, first = 32;
    bool any = false, all = true;
    for (unsigned j = 0; j < 32; ++j) {
      if (in[j] != in[i]) continue;
      mates |= 1u << j;
      sum += j;
      first = std::min(first, j);
      any |= j == 7;
      all &= j >= 3;
    }
    EXPECT_EQ(out[i * 5], mates) << i;
    EXPECT_EQ(out[i * 5 + 1], any + 2u * all) << i;
    EXPECT_EQ(out[i * 5 + 2], first) << i;
    EXPECT_EQ(out[i * 5 + 3], mates + 1) << i;
    EXPECT_EQ(out[i * 5 + 4], sum) << i;
  }
}

}  // namespace
}  // namespace softgpu::testing
