// The first samples that people run, against references computed on the host.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "softgpu/engine/test_device.h"

namespace softgpu::testing {
namespace {

class Basic : public ::testing::TestWithParam<const char*> {
 protected:
  Device device{std::string(GetParam()) + "/basic"};
};
INSTANTIATE_TEST_SUITE_P(Targets, Basic, ::testing::Values("sm_75", "sm_90"));

float Noise(int64_t i) { return static_cast<float>((i * 7919 + 13) % 1009) / 1009.0f; }

TEST_P(Basic, AddsVectors) {
  const int n = 100003;
  Array<float> a(n), b(n), c(n, -1);
  for (int i = 0; i < n; ++i) {
    a[i] = Noise(i);
    b[i] = Noise(3 * i);
  }
  EXPECT_RUNS(device.Run("vector_add", {(n + 255) / 256}, {256}, a, b, c, n));
  for (int i = 0; i < n; ++i) ASSERT_EQ(c[i], a[i] + b[i]) << i;
}

TEST_P(Basic, MultipliesMatrices) {
  const int n = 128;
  Array<float> a(n * n), b(n * n), c(n * n);
  for (int i = 0; i < n * n; ++i) {
    a[i] = Noise(i);
    b[i] = Noise(5 * i + 1);
  }
  EXPECT_RUNS(device.Run("matmul", {n / 16, n / 16}, {16, 16}, a, b, c, n));
  for (int row = 0; row < n; ++row) {
    for (int column = 0; column < n; ++column) {
      float sum = 0;
      for (int k = 0; k < n; ++k) sum = std::fma(a[row * n + k], b[k * n + column], sum);
      ASSERT_EQ(c[row * n + column], sum) << row << "," << column;
    }
  }
}

TEST_P(Basic, Transposes) {
  const int width = 100, height = 75;
  Array<int> in(width * height), out(width * height, -1);
  std::iota(in.data(), in.data() + in.size(), 0);
  EXPECT_RUNS(device.Run("transpose", {4, 3}, {32, 8}, in, out, width, height));
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) ASSERT_EQ(out[x * height + y], in[y * width + x]);
  }
}

TEST_P(Basic, CountsHistogram) {
  const int n = 50000;
  Array<unsigned char> data(n);
  Array<unsigned> bins(256, 0);
  std::vector<unsigned> expected(256, 0);
  for (unsigned i = 0; i < n; ++i) ++expected[data[i] = static_cast<unsigned char>(i * i / 7)];
  EXPECT_RUNS(device.Run("histogram", {8}, {192}, data, bins, n));
  for (int i = 0; i < 256; ++i) EXPECT_EQ(bins[i], expected[i]);
}

TEST_P(Basic, SumsByShuffleAndByTree) {
  const int n = 10000;
  Array<int> in(n), total(1, 0), partial(40, 0);
  for (int i = 0; i < n; ++i) in[i] = i % 97 - 11;
  int expected = std::accumulate(in.data(), in.data() + n, 0);
  EXPECT_RUNS(device.Run("shuffle_sum", {(n + 127) / 128}, {128}, in, total, n));
  EXPECT_EQ(total[0], expected);
  device.dynamic_shared_bytes = 256 * sizeof(int);
  EXPECT_RUNS(device.Run("tree_sum", {40}, {256}, in, partial, n));
  EXPECT_EQ(std::accumulate(partial.data(), partial.data() + 40, 0), expected);
}

TEST_P(Basic, Scans) {
  Array<int> in(512), out(512);
  for (int i = 0; i < 512; ++i) in[i] = i * 31 % 17 - 5;
  EXPECT_RUNS(device.Run("scan", {1}, {512}, in, out));
  int sum = 0;
  for (int i = 0; i < 512; ++i) ASSERT_EQ(out[i], sum += in[i]) << i;
}

double Normal(double d) { return 0.5 * std::erfc(-d / std::sqrt(2.0)); }

TEST_P(Basic, ReachesSharedMemoryFromBelow) {
  Array<int> out(32);
  EXPECT_RUNS(device.Run("shared_from_below", {1}, {32}, out));
  for (size_t i = 0; i < out.size(); ++i) EXPECT_EQ(out[i], static_cast<int>(i) * 3);
}

TEST_P(Basic, KnowsEveryThreadsCoordinates) {
  Array<int> out(5 * 7 * 3);
  EXPECT_RUNS(device.Run("coordinates", {1}, {5, 7, 3}, out));
  for (int i = 0; i < 5 * 7 * 3; ++i) {
    EXPECT_EQ(out[static_cast<size_t>(i)], i % 5 + 100 * (i / 5 % 7) + 10000 * (i / 35));
  }
}

TEST_P(Basic, PricesOptions) {
  const int n = 1000;
  const float rate = 0.02f, volatility = 0.3f;
  Array<float> call(n), put(n), price(n), strike(n), years(n);
  for (int i = 0; i < n; ++i) {
    price[i] = 5 + 25 * Noise(i);
    strike[i] = 1 + 99 * Noise(i * 3 + 1);
    years[i] = 0.25f + 9.75f * Noise(i * 11 + 5);
  }
  EXPECT_RUNS(device.Run("black_scholes", {(n + 127) / 128}, {128}, call, put, price, strike, years,
                         rate, volatility, n));
  for (int i = 0; i < n; ++i) {
    double root = std::sqrt(years[i]);
    double d1 =
        (std::log(price[i] / strike[i]) + (rate + 0.5 * volatility * volatility) * years[i]) /
        (volatility * root);
    double d2 = d1 - volatility * root;
    double discounted = strike[i] * std::exp(-rate * years[i]);
    ASSERT_NEAR(call[i], price[i] * Normal(d1) - discounted * Normal(d2), 2e-5 * strike[i] + 2e-5);
    ASSERT_NEAR(put[i], discounted * Normal(-d2) - price[i] * Normal(-d1), 2e-5 * strike[i] + 2e-5);
  }
}

TEST_P(Basic, PullsBodies) {
  struct Body {
    float x, y, z, mass;
  };
  const int n = 256;
  Array<Body> bodies(n), forces(n);
  for (int i = 0; i < n; ++i)
    bodies[i] = {Noise(i), Noise(i + 500), Noise(i * 3), 1 + Noise(7 * i)};
  EXPECT_RUNS(device.Run("nbody", {n / 64}, {64}, bodies, forces, n));
  for (int i = 0; i < n; ++i) {
    double sum = 0;
    for (int j = 0; j < n; ++j) {
      double x = bodies[j].x - bodies[i].x, y = bodies[j].y - bodies[i].y;
      double z = bodies[j].z - bodies[i].z;
      sum += bodies[j].mass * x / std::pow(x * x + y * y + z * z + 0.01, 1.5);
    }
    ASSERT_NEAR(forces[i].x, sum, 1e-4 * n) << i;
  }
}

}  // namespace
}  // namespace softgpu::testing
