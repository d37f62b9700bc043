// wmma, mma and the moves between memory and registers against products by three loops.
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

// What is left of a number in the type.
template <class In>
int InputAt(size_t i) {
  if constexpr (std::is_integral_v<In>) return static_cast<In>(NumberAt(i));
  return NumberAt(i);
}

class Matrices : public ::testing::Test {
 protected:
  // d = 2 * (a * b + c), c and d by columns; a by rows and b by columns, or turned: the other way.
  template <class In, class Sum>
  void Check(const std::string& kernel, size_t m, size_t n, size_t k, bool turned) {
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
          size_t of_a = turned ? i * kStep + row : row * kStep + i;
          size_t of_b = turned ? i * kStep + column : column * kStep + i;
          sum += InputAt<In>(of_a) * InputAt<In>(of_b + 3);
        }
        EXPECT_EQ(static_cast<int>(d[column * kStep + row]), 2 * sum)
            << kernel << " " << row << "," << column;
      }
    }
    EXPECT_EQ(static_cast<int>(d[m]), 0) << "written beside the matrix";
  }

  template <class In, class Sum>
  void CheckBoth(const std::string& kernel, size_t m, size_t n, size_t k) {
    Check<In, Sum>(kernel, m, n, k, false);
    Check<In, Sum>("turned_" + kernel, m, n, k, true);
  }

  template <class In, class Sum>
  void CheckShapes(const std::string& kernel) {
    CheckBoth<In, Sum>(kernel + "_square", 16, 16, 16);
    CheckBoth<In, Sum>(kernel + "_tall", 32, 8, 16);
    CheckBoth<In, Sum>(kernel + "_wide", 8, 32, 16);
  }

  // Of numbers of less than a byte; d = a * b, or what `combine` is in place of the product.
  template <class F>
  void CheckSmall(const char* kernel, uint32_t bits, size_t k, F combine) {
    Array<uint8_t> a(512), b(512);
    Array<int> d(64);
    for (size_t i = 0; i < a.size(); ++i) {
      a[i] = static_cast<uint8_t>(i * 2654435761u >> 13);
      b[i] = static_cast<uint8_t>(i * 2654435761u >> 17);
    }
    EXPECT_RUNS(device.Run(kernel, {1}, {32}, a, b, d));
    auto at = [&](Array<uint8_t>& from, size_t i) {
      return from[i * bits / 8] >> i * bits % 8 & ((1u << bits) - 1);
    };
    for (size_t i = 0; i < 64; ++i) {
      int sum = 0;
      for (size_t x = 0; x < k; ++x) {
        sum += combine(at(a, i / 8 * 2 * k + x), at(b, i % 8 * 2 * k + x));
      }
      EXPECT_EQ(d[i], sum) << kernel << " " << i;
    }
  }

  Device device{"sm_90/matrices"};
};

TEST_F(Matrices, OfAllTypesAndShapes) {
  CheckShapes<Bfloat16, float>("bfloat");
  CheckShapes<int8_t, int>("byte");
  CheckBoth<double, double>("double_small", 8, 8, 4);
  CheckShapes<_Float16, float>("half");
  CheckShapes<_Float16, _Float16>("half_sum");
  Check<float, float>("tf32_rounded", 16, 16, 8, false);
  CheckBoth<float, float>("tf32_square", 16, 16, 8);
  CheckShapes<uint8_t, int>("unsigned_byte");
}

TEST_F(Matrices, OfLessThanBytes) {
  auto product = [](unsigned a, unsigned b) { return static_cast<int>(a * b); };
  CheckSmall("bits_and", 1, 128, product);
  CheckSmall("bits_xor", 1, 128, [](unsigned a, unsigned b) { return static_cast<int>(a ^ b); });
  CheckSmall("nibbles", 4, 32, [](unsigned a, unsigned b) {
    return (static_cast<int>(a ^ 8) - 8) * (static_cast<int>(b ^ 8) - 8);
  });
  CheckSmall("unsigned_nibbles", 4, 32, product);
}

TEST_F(Matrices, MoveThroughRegisters) {
  Array<uint16_t> in(256);
  Array<uint32_t> out(32 * 24);
  for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<uint16_t>(i * 257 + 1);
  EXPECT_RUNS(device.Run("rows_moved", {1}, {32}, in, out));
  // How many of the four matrices each way turns round.
  static constexpr size_t kTurned[] = {0, 1, 2, 0, 4, 4};
  for (size_t way = 0; way < std::size(kTurned); ++way) {
    for (size_t i = 0; i < in.size(); ++i) {
      size_t matrix = i / 64;
      size_t from = matrix < kTurned[way] ? matrix * 64 + i % 8 * 8 + i / 8 % 8 : i;
      uint32_t word = out[i / 2 % 32 * 24 + way * 4 + i / 64];
      EXPECT_EQ(word >> i % 2 * 16 & 0xffff, in[from]) << way << " " << i;
    }
  }
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
      constexpr int kIntMax = std::numeric_limits<int>::max();
      EXPECT_EQ(d[row * 8 + column], std::min<int64_t>(sum, kIntMax)) << row << "," << column;
      most += sum > kIntMax;
    }
  }
  EXPECT_GT(most, 0);
}

}  // namespace
}  // namespace softgpu::testing
