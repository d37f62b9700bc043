// Conversions of single precision to f16, bf16 and tf32 against rounding by division.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "softgpu/engine/test_device.h"

namespace softgpu::testing {
namespace {

constexpr std::string_view kNames[] = {
#define ONE(op) #op,
#define PAIR(op) #op,
#define WORD(op) #op,
#include "softgpu/engine/test_kernels/narrowings.inc"
#undef ONE
#undef PAIR
#undef WORD
};

struct Format {
  int fraction;
  int least_exponent;
  double most;
};
const Format kHalf{10, -14, 65504};
const Format kBfloat{7, -126, std::ldexp(255, 120)};
const Format kTensorFloat{10, -126, std::ldexp(2047, 117)};

bool Has(std::string_view name, std::string_view part) {
  return name.find(part) != std::string_view::npos;
}

const Format& FormatOf(std::string_view name) {
  return Has(name, ".bf16") ? kBfloat : Has(name, ".f16") ? kHalf : kTensorFloat;
}

// Among the format's values, which lie `step` apart here.
double Expected(std::string_view name, double value) {
  const Format& format = FormatOf(name);
  if (value != value) return NAN;
  if (Has(name, ".relu") && value <= 0) return 0;
  bool clamps = Has(name, ".satfinite");
  if (std::isinf(value)) return clamps ? std::copysign(format.most, value) : value;
  int exponent = value == 0 ? 0 : std::ilogb(value);
  double step = std::ldexp(1, std::max(exponent, format.least_exponent) - format.fraction);
  double steps = value / step;
  double whole = Has(name, ".rna")  ? std::round(steps)
                 : Has(name, ".rz") ? std::trunc(steps)
                                    : std::nearbyint(steps);
  double result = whole * step;
  if (std::fabs(result) <= format.most) return result;
  return std::copysign(clamps || Has(name, ".rz") ? format.most : INFINITY, value);
}

double ValueOf(std::string_view name, uint32_t bits) {
  if (Has(name, ".tf32")) return std::bit_cast<float>(bits);
  if (Has(name, ".bf16")) return std::bit_cast<float>(bits << 16);
  return static_cast<float>(std::bit_cast<_Float16>(static_cast<uint16_t>(bits)));
}

std::vector<float> MakeValues() {
  std::vector<float> values = {0.0f,     INFINITY,   NAN,        65504,    65519,  65520,
                               65535,    65536,      3.4e38f,    3.39e38f, 1e-8f,  3e-8f,
                               5.97e-8f, 6.1e-5f,    1e-38f,     1e-40f,   1e-45f, 9.2e-41f,
                               1.5f,     1.0009765f, 1.00048828f};
  for (uint32_t i = 0; i < 4000; ++i) {
    uint32_t bits = i * 2654435761u & 0x7fffffff;
    // The middle between two values and its neighbours, and numbers that are not too small.
    if (i % 4 == 1) bits = (bits & 0x7fff0000) | 0x8000 | (i / 4 % 3 - 1);
    if (i % 4 == 2) bits = (bits & 0x7fffe000) | 0x1000 | (i / 4 % 3 - 1);
    if (i % 2 == 1) bits = (bits & 0x0fffffff) | 0x38000000;
    values.push_back(std::bit_cast<float>(bits));
  }
  for (size_t i = values.size(); i-- > 0;) values.push_back(-values[i] * (i % 2 == 0 ? 1 : 0.75f));
  return values;
}

void ExpectValue(std::string_view name, double from, double actual) {
  double expected = Expected(name, from);
  bool same = std::isnan(expected) ? std::isnan(actual) : actual == expected;
  EXPECT_TRUE(same && (std::isnan(expected) || std::signbit(actual) == std::signbit(expected)))
      << name << " of " << from << " is " << actual << " instead of " << expected;
}

TEST(Narrowings, RoundAsTheirNamesSay) {
  std::vector<float> values = MakeValues();
  auto n = static_cast<uint32_t>(values.size());
  Array<float> in(n);
  Array<uint32_t> out(n * std::size(kNames));
  std::copy(values.begin(), values.end(), in.data());
  Device device("sm_90/narrowings");
  EXPECT_RUNS(device.Run("narrowings", {(n + 127) / 128}, {128}, in, out, n));
  for (size_t k = 0; k < std::size(kNames); ++k) {
    for (uint32_t i = 0; i < n; ++i) {
      uint32_t bits = out[k * n + i];
      ExpectValue(kNames[k], values[i], ValueOf(kNames[k], bits));
      if (Has(kNames[k], "x2"))
        ExpectValue(kNames[k], values[n - 1 - i], ValueOf(kNames[k], bits >> 16));
      if (Has(kNames[k], ".tf32") && !std::isnan(values[i])) {
        EXPECT_EQ(bits & 0x1fff, 0u) << kNames[k] << " " << values[i];
      }
    }
  }
}

}  // namespace
}  // namespace softgpu::testing
