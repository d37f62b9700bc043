// What newer devices have besides barriers, matrices and quarters.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <numeric>

#include "softgpu/engine/test_device.h"

namespace softgpu::testing {
namespace {

struct alignas(16) Two {
  uint64_t low, high;
};

class Newer : public ::testing::Test {
 protected:
  Device device{"sm_90/newer"};
};

TEST_F(Newer, SixteenBytesAreExchangedAsOne) {
  const int times = 20;
  Array<Two> count(1), box(1);
  Array<int> torn(1);
  EXPECT_RUNS(device.Run("count_wide", {8}, {64}, count, box, torn, times));
  EXPECT_EQ(count[0].low, 8u * 64 * times);
  EXPECT_EQ(count[0].high, 3u * 8 * 64 * times);
  EXPECT_EQ(torn[0], 0);
  EXPECT_TRUE(box[0].low >= 1 && box[0].low <= 64) << box[0].low;
}

TEST_F(Newer, SixteenBytesOfSharedMemoryToo) {
  Array<Two> out(1);
  EXPECT_RUNS(device.Run("count_wide_shared", {1}, {128}, out));
  EXPECT_EQ(out[0].low, 128u);
  EXPECT_EQ(out[0].high, 256u);
}

TEST_F(Newer, VectorsAreAddedElementByElement) {
  struct Four {
    float x, y, z, w;
  };
  Array<Four> four(1), last(1);
  Array<float> two(2);
  EXPECT_RUNS(device.Run("add_vectors", {4}, {64}, four, two, last));
  EXPECT_EQ(four[0].x, 256);
  EXPECT_EQ(four[0].y, 512);
  EXPECT_EQ(four[0].z, 768);
  EXPECT_EQ(four[0].w, 4 * 63 * 32);
  EXPECT_EQ(two[0], 128);
  EXPECT_EQ(two[1], -256);
  EXPECT_EQ(last[0].x, 255);
  EXPECT_EQ(last[0].z, 3 * 255);
}

TEST_F(Newer, BlocksOfMemoryAreReduced) {
  const int count = 60;
  Array<int> sums(64, 1000);
  Array<uint64_t> most(32);
  Array<uint16_t> halves(64);
  EXPECT_RUNS(device.Run("reduce_rows", {7}, {64}, sums, most, halves, count));
  for (int i = 0; i < 64; ++i) {
    EXPECT_EQ(sums[i], 1000 + (i < count ? 7 * i + 21 : 0)) << i;
    _Float16 half = std::bit_cast<_Float16>(halves[i]);
    EXPECT_EQ(static_cast<int>(half), 7 * i) << i;
  }
  for (int i = 0; i < 32; ++i) EXPECT_EQ(most[i], 4 + (uint64_t{1} << 40)) << i;
}

TEST_F(Newer, CopiesThatIgnoreTheirSourceWriteZeros) {
  Array<int> from(128), to(128, -1);
  std::iota(from.data(), from.data() + from.size(), 1);
  EXPECT_RUNS(device.Run("copy_some", {1}, {32}, from, to));
  for (int i = 0; i < 128; ++i) EXPECT_EQ(to[i], i / 4 % 2 == 0 ? i + 1 : 0) << i;
}

TEST_F(Newer, GroupsOfSeveralWarpsMeet) {
  const uint32_t blocks = 20;
  Array<int> values(blocks * 256), sums(blocks * 2, -1);
  std::iota(values.data(), values.data() + values.size(), 0);
  EXPECT_RUNS(device.Run("sum_groups", {blocks}, {256}, values, sums));
  for (uint32_t i = 0; i < sums.size(); ++i) {
    int first = static_cast<int>(i) * 128;
    EXPECT_EQ(sums[i], 128 * first + 127 * 64) << i;
  }
}

// The n-th set bit from `base` on, one bit after the other.
uint32_t FindSet(uint32_t mask, int base, int n) {
  if (n == 0) return (mask >> base & 1) != 0 ? static_cast<uint32_t>(base) : ~0u;
  for (int at = base, found = 0; at >= 0 && at<32; at += n> 0 ? 1 : -1) {
    if ((mask >> at & 1) != 0 && ++found == std::abs(n)) return static_cast<uint32_t>(at);
  }
  return ~0u;
}

TEST_F(Newer, SetBitsAreFoundInBothDirections) {
  Array<uint32_t> masks(32), places(7 * 32);
  for (uint32_t i = 0; i < 32; ++i) masks[i] = i * 0x9e3779b9 ^ 0xf0f0;
  EXPECT_RUNS(device.Run("find_set_bits", {1}, {32}, masks, places));
  for (int n = -3; n <= 3; ++n) {
    for (int i = 0; i < 32; ++i) {
      EXPECT_EQ(places[static_cast<size_t>((n + 3) * 32 + i)],
                FindSet(masks[static_cast<size_t>(i)], i, n))
          << n << " from " << i;
    }
  }
}

TEST_F(Newer, NumbersAreCutAtZeroAndOne) {
  Array<int> in(64), out(64);
  Array<uint32_t> pairs(32);
  for (int i = 0; i < 64; ++i) in[static_cast<size_t>(i)] = i % 7 - 3;
  EXPECT_RUNS(device.Run("rare_numbers", {1}, {32}, in, out, pairs));
  for (size_t i = 0; i < 32; ++i) {
    int x = in[2 * i], y = in[2 * i + 1];
    EXPECT_EQ(out[2 * i], std::max(std::min(x, y), 0)) << i;
    EXPECT_EQ(out[2 * i + 1], std::max(std::max(x, y), 0)) << i;
    auto low = std::bit_cast<_Float16>(static_cast<uint16_t>(pairs[i]));
    auto high = std::bit_cast<_Float16>(static_cast<uint16_t>(pairs[i] >> 16));
    EXPECT_EQ(static_cast<float>(low), std::clamp(x * 0.5f, 0.0f, 1.0f)) << i;
    EXPECT_EQ(static_cast<float>(high), std::clamp(y * 0.25f, 0.0f, 1.0f)) << i;
  }
}

TEST_F(Newer, PairsOfIntegersArePacked) {
  const int some[] = {0, 1, -1, 5, -3, 7, -8, 100, -200, 40000, -70000, INT32_MAX, INT32_MIN};
  Array<int> in(32 * 3);
  Array<uint32_t> out(32 * 8);
  for (size_t i = 0; i < in.size(); ++i) in[i] = some[i * 5 % std::size(some)];
  EXPECT_RUNS(device.Run("pack_pairs", {1}, {32}, in, out));
  for (size_t i = 0; i < 32; ++i) {
    for (int kind = 0; kind < 8; ++kind) {
      const int bits = kind < 2 ? 16 : 8 >> (kind / 2 - 1);
      const int low = kind % 2 == 0 ? -(1 << (bits - 1)) : 0;
      const int high = (1 << (kind % 2 == 0 ? bits - 1 : bits)) - 1;
      auto cut = [&](int v) {
        return static_cast<uint64_t>(std::clamp(v, low, high)) & ((uint64_t{1} << bits) - 1);
      };
      uint64_t c = kind < 2 ? 0 : static_cast<uint32_t>(in[i * 3 + 2]);
      uint64_t expected = c << (2 * bits) | cut(in[i * 3]) << bits | cut(in[i * 3 + 1]);
      EXPECT_EQ(out[i * 8 + static_cast<size_t>(kind)], static_cast<uint32_t>(expected))
          << kind << " of " << in[i * 3] << " and " << in[i * 3 + 1];
    }
  }
}

TEST_F(Newer, OperationsThatAreRare) {
  const int some[] = {0, 1, -1, 77, -9000, 40000, 1 << 20, -(1 << 24), 1 << 30, -(1 << 30)};
  Array<int> in(32 * 3), out(32 * 10);
  for (size_t i = 0; i < in.size(); ++i) in[i] = some[(i * 7 + i / 9) % std::size(some)];
  in[0] = in[1] = INT32_MIN, in[2] = INT32_MAX;
  in[3] = INT32_MIN, in[4] = INT32_MAX, in[5] = INT32_MIN;
  EXPECT_RUNS(device.Run("rare_operations", {1}, {32}, in, out));
  auto clamp = [](int64_t v) { return std::clamp<int64_t>(v, INT32_MIN, INT32_MAX); };
  auto low = [](int64_t v) { return static_cast<int64_t>(static_cast<uint64_t>(v) << 40) >> 40; };
  for (size_t i = 0; i < 32; ++i) {
    const int64_t a = in[i * 3], b = in[i * 3 + 1], c = in[i * 3 + 2];
    const int* o = out.data() + i * 10;
    const auto sa = static_cast<int16_t>(a), sb = static_cast<int16_t>(b);
    const auto ua = static_cast<uint16_t>(a), ub = static_cast<uint16_t>(b);
    EXPECT_EQ(o[0], static_cast<int16_t>(c + std::abs(sa - sb))) << i;
    EXPECT_EQ(o[1], static_cast<uint16_t>(c + std::abs(ua - ub))) << i;
    EXPECT_EQ(o[2], clamp((a * b >> 32) + c)) << i;
    EXPECT_EQ(o[3], clamp((low(a) * low(b) >> 16) + c)) << i;
    const int64_t two = (a & b & ~c) | (a & ~b & c) | (~a & b & c);  // table 0x68
    EXPECT_EQ(o[4], static_cast<int>(two)) << i;
    EXPECT_EQ(o[5], static_cast<int>(two) != 0 || c < 0 ? 1 : 0) << i;
    EXPECT_EQ(o[6], static_cast<int>(a & b & c) != 0 && c >= 0 ? 1 : 0) << i;
    const int64_t sign = (a < 0) != (b < 0) ? -1 : 1;
    auto single = [&](int64_t v) { return clamp(static_cast<int64_t>(static_cast<float>(v))); };
    EXPECT_EQ(o[7], single(sign * std::min(std::abs(a), std::abs(b)))) << i;
    EXPECT_EQ(o[8], single(sign * std::max(std::abs(a), std::abs(b)))) << i;
    EXPECT_EQ(o[9], 1) << i;
  }
}

}  // namespace
}  // namespace softgpu::testing
