// 8-bit floating-point values: widened ones against their definition, narrowed ones against a
// search for the nearest among all.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "softgpu/engine/test_device.h"

namespace softgpu::testing {
namespace {

struct Format {
  int fraction;
  int bias;
  uint8_t largest;
};
constexpr Format kE4m3{3, 7, 0x7e};
constexpr Format kE5m2{2, 15, 0x7b};

float ValueOf(const Format& format, uint32_t bits) {
  uint32_t size = bits & 0x7f;
  float sign = (bits & 0x80) != 0 ? -1 : 1;
  if (size > format.largest) return format.fraction == 2 && size == 0x7c ? sign * INFINITY : NAN;
  int exponent = static_cast<int>(size >> format.fraction);
  double fraction = size & ((1u << format.fraction) - 1);
  double steps = exponent == 0 ? fraction : fraction + (1 << format.fraction);
  double value = steps * std::pow(2, std::max(exponent, 1) - format.bias - format.fraction);
  return sign * static_cast<float>(value);
}

// Of two that are equally near the even one.
uint32_t NearestTo(const Format& format, float value) {
  if (value != value) return 0x7f;
  uint32_t best = 0;
  for (uint32_t bits = 1; bits <= format.largest; ++bits) {
    double here = std::fabs(double{ValueOf(format, bits)} - std::fabs(double{value}));
    double there = std::fabs(double{ValueOf(format, best)} - std::fabs(double{value}));
    if (here < there || (here == there && bits % 2 == 0)) best = bits;
  }
  if (std::isinf(value)) best = format.largest;
  return best | (std::signbit(value) ? 0x80 : 0);
}

float HalfValue(uint32_t bits) {
  return static_cast<float>(std::bit_cast<_Float16>(static_cast<uint16_t>(bits)));
}

std::vector<float> MakeValues() {
  std::vector<float> values = {0.0f,  -0.0f, INFINITY, -INFINITY, NAN,   448,
                               464,   465,   480,      1e9f,      -1e9f, 57344,
                               61440, 61441, 65519,    65536,     1e-9f, -1e-9f};
  for (const Format& format : {kE4m3, kE5m2}) {
    for (uint32_t bits = 0; bits < format.largest; ++bits) {
      float low = ValueOf(format, bits);
      float middle = (low + ValueOf(format, bits + 1)) / 2;
      for (float v : {low, middle, std::nextafter(middle, 0.0f), std::nextafter(middle, 1e9f)}) {
        values.insert(values.end(), {v, -v});
      }
    }
  }
  return values;
}

TEST(Quarters, AreTheNearest) {
  std::vector<float> values = MakeValues();
  int n = static_cast<int>(values.size() / 2);
  Array<float> in(values.size());
  Array<uint16_t> out(static_cast<size_t>(n) * 6);
  std::copy(values.begin(), values.end(), in.data());
  Device device("sm_90/quarters");
  EXPECT_RUNS(device.Run("narrow", {static_cast<uint32_t>(n + 127) / 128}, {128}, in, out, n));
  for (int i = 0; i < n; ++i) {
    auto pair = [&](const Format& format, auto change) {
      return NearestTo(format, change(in[2 * i])) << 8 | NearestTo(format, change(in[2 * i + 1]));
    };
    auto same = [](float v) { return v; };
    auto rectified = [](float v) { return v < 0 ? 0.0f : v; };
    auto half = [](float v) { return static_cast<float>(static_cast<_Float16>(v)); };
    const uint16_t* o = out.data() + i * 6;
    EXPECT_EQ(o[0], pair(kE4m3, same)) << in[2 * i] << " " << in[2 * i + 1];
    EXPECT_EQ(o[1], pair(kE5m2, same)) << in[2 * i] << " " << in[2 * i + 1];
    EXPECT_EQ(o[2], pair(kE4m3, rectified)) << in[2 * i] << " " << in[2 * i + 1];
    EXPECT_EQ(o[3], pair(kE4m3, half)) << in[2 * i] << " " << in[2 * i + 1];
    EXPECT_EQ(o[4], pair(kE5m2, half)) << in[2 * i] << " " << in[2 * i + 1];
    EXPECT_EQ(o[5], static_cast<uint16_t>(o[0] << 8 | o[0] >> 8));
  }
}

TEST(Quarters, WidenExactly) {
  Array<uint32_t> out(256 * 3);
  Device device("sm_90/quarters");
  EXPECT_RUNS(device.Run("widen", {1}, {256}, out));
  auto check = [](float actual, float expected) {
    EXPECT_TRUE(actual == expected || (std::isnan(actual) && std::isnan(expected)))
        << actual << " " << expected;
    EXPECT_TRUE(std::isnan(expected) || std::signbit(actual) == std::signbit(expected));
  };
  for (uint32_t i = 0; i < 256; ++i) {
    const uint32_t* o = out.data() + i * 3;
    check(HalfValue(o[0]), ValueOf(kE4m3, i));
    check(HalfValue(o[0] >> 16), ValueOf(kE4m3, 255 - i));
    check(HalfValue(o[1]), ValueOf(kE5m2, i));
    check(HalfValue(o[1] >> 16), ValueOf(kE5m2, 255 - i));
    float value = ValueOf(kE5m2, i);
    check(HalfValue(o[2]), value < 0 ? 0 : value);
  }
}

}  // namespace
}  // namespace softgpu::testing
