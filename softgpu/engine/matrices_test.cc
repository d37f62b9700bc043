// wmma, mma and ldmatrix against products by three loops.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <limits>

#include "softgpu/engine/test_device.h"

namespace softgpu::testing {
namespace {

constexpr size_t kStep = 40;

// Small numbers of both signs, of which every type here holds sums exactly.
int NumberAt(size_t i) { return static_cast<int>(i * 7 % 11) - 5; }

struct Bfloat16 {
  uint16_t bits = 0;
  Bfloat16() = default;
  explicit Bfloat16(int value)
      : bits(static_cast<uint16_t>(std::bit_cast<uint32_t>(static_cast<float>(value)) >> 16)) {}
};

class Matrices : public ::testing::Test {
 protected:
  // d = 2 * (a * b + c), a by rows, b, c and d by columns.
  template <class In, class Sum>
  void Check(const char* kernel, size_t m, size_t n, size_t k) {
    Array<In> a(kStep * 40), b(kStep * 40);
    Array<Sum> c(kStep * 40), d(kStep * 40);
    for (size_t i = 0; i < a.size(); ++i) {
      a[i] = static_cast<In>(NumberAt(i));
      b[i] = static_cast<In>(NumberAt(i + 3));
      c[i] = static_cast<Sum>(NumberAt(i + 5));
    }
    EXPECT_RUNS(device.Run(kernel, {1}, {32}, a, b, c, d));
    for (size_t row = 0; row < m; ++row) {
      for (size_t column = 0; column < n; ++column) {
        int sum = NumberAt(column * kStep + row + 5);
        for (size_t i = 0; i < k; ++i) {
          sum += NumberAt(row * kStep + i) * NumberAt(column * kStep + i + 3);
        }
        EXPECT_EQ(static_cast<int>(d[column * kStep + row]), 2 * sum)
            << kernel << " " << row << "," << column;
      }
    }
    EXPECT_EQ(static_cast<int>(d[m]), 0) << "written beside the matrix";
  }

  Device device{"sm_90/matrices"};
};

TEST_F(Matrices, OfAllTypesAndShapes) {
  Check<_Float16, float>("half_square", 16, 16, 16);
  Check<_Float16, float>("half_tall", 32, 8, 16);
  Check<_Float16, _Float16>("half_wide", 8, 32, 16);
  Check<Bfloat16, float>("bfloat_square", 16, 16, 16);
  Check<float, float>("tf32_square", 16, 16, 8);
  Check<int8_t, int>("byte_tall", 32, 8, 16);
  Check<double, double>("double_small", 8, 8, 4);
}

TEST_F(Matrices, FromRowsInSharedMemory) {
  Array<_Float16> a(256), b(128);
  Array<float> d(128);
  Array<uint32_t> copy(64);
  for (size_t i = 0; i < 256; ++i) a[i] = static_cast<_Float16>(NumberAt(i));
  for (size_t i = 0; i < 128; ++i) b[i] = static_cast<_Float16>(NumberAt(i + 3));
  EXPECT_RUNS(device.Run("rows_to_product", {1}, {32}, a, b, d, copy));
  for (size_t row = 0; row < 16; ++row) {
    for (size_t column = 0; column < 8; ++column) {
      int sum = 0;
      for (size_t k = 0; k < 16; ++k) {
        sum += NumberAt(row * 16 + k) * NumberAt(k * 8 + column + 3);
      }
      EXPECT_EQ(d[row * 8 + column], static_cast<float>(sum)) << row << "," << column;
    }
  }
  EXPECT_EQ(std::memcmp(copy.data(), b.data(), 256), 0);
}

TEST_F(Matrices, IntegersStopAtTheLargest) {
  Array<int8_t> a(16 * 32);
  Array<uint8_t> b(8 * 32);
  Array<int> d(16 * 8);
  for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<int8_t>(NumberAt(i));
  for (size_t i = 0; i < b.size(); ++i) b[i] = static_cast<uint8_t>(200 + NumberAt(i));
  EXPECT_RUNS(device.Run("byte_product", {1}, {32}, a, b, d));
  int most = 0;
  for (size_t row = 0; row < 16; ++row) {
    for (size_t column = 0; column < 8; ++column) {
      int64_t sum = 0x7ffffff0;
      for (size_t k = 0; k < 32; ++k) sum += a[row * 32 + k] * b[column * 32 + k];
      constexpr int kMost = std::numeric_limits<int>::max();
      EXPECT_EQ(d[row * 8 + column], std::min<int64_t>(sum, kMost)) << row << "," << column;
      most += sum > kMost;
    }
  }
  EXPECT_GT(most, 0);
}

}  // namespace
}  // namespace softgpu::testing
