// Arithmetic in all types against the host's.
#include <gtest/gtest.h>

#include <bit>
#include <cfenv>
#include <cmath>
#include <limits>

#include "softgpu/engine/test_device.h"

namespace softgpu::testing {
namespace {

class Math : public ::testing::TestWithParam<const char*> {
 protected:
  Device device{std::string(GetParam()) + "/math"};
};
INSTANTIATE_TEST_SUITE_P(Targets, Math, ::testing::Values("sm_75", "sm_90"));

// Within some units in the last place of the expected value (CUDA's own bounds are 1 to 8).
void ExpectClose(double actual, double expected, double epsilon, const char* what, double x) {
  double tolerance = epsilon * std::max(std::fabs(expected), 1e-3);
  EXPECT_NEAR(actual, expected, tolerance) << what << "(" << x << ")";
}

TEST_P(Math, FloatFunctions) {
  const int n = 333;
  Array<float> in(n), out(n * 16);
  for (int i = 0; i < n; ++i) in[i] = static_cast<float>(i - 166) * 0.031f;
  EXPECT_RUNS(device.Run("float_functions", {3}, {128}, in, out, n));
  for (int i = 0; i < n; ++i) {
    float xf = in[i];
    double x = xf;
    double a = std::fabs(x);
    const float* o = out.data() + i * 16;
    const double e = 2e-6;
    ExpectClose(o[0], std::sin(x), e, "sin", x);
    ExpectClose(o[1], std::cos(double{xf * 1000.0f}), e, "cos", x);
    ExpectClose(o[2], std::exp(x), e, "exp", x);
    ExpectClose(o[3], std::log(double{std::fabs(xf) + 0.5f}), e, "log", x);
    ExpectClose(o[4], std::pow(double{std::fabs(xf) + 0.1f}, double{1.7f}), e, "pow", x);
    ExpectClose(o[5], std::tanh(x), e, "tanh", x);
    ExpectClose(o[6], std::atan2(x, double{0.7f}), e, "atan2", x);
    ExpectClose(o[7], std::sqrt(a), e, "sqrt", x);
    ExpectClose(o[8], std::erf(x), e, "erf", x);
    EXPECT_EQ(o[9], std::fmod(xf, 0.37f));
    EXPECT_EQ(o[10], std::rint(xf * 3));
    EXPECT_EQ(o[11], std::floor(xf * 3) + std::ceil(xf * 5) + std::trunc(xf * 7));
    ExpectClose(o[12], std::cbrt(x), e, "cbrt", x);
    ExpectClose(o[13], std::tgamma(double{std::fabs(xf) + 1}), 1e-5, "tgamma", x);
    ExpectClose(o[14], std::sin(double{xf * 1e6f}), e, "sin of large", x);
    double sum =
        std::log1p(a) + std::expm1(x) + std::exp2(x) + std::log2(double{std::fabs(xf) + 1});
    ExpectClose(o[15], sum, 4e-6, "sum", x);
  }
}

TEST_P(Math, DoubleFunctions) {
  const int n = 333;
  Array<double> in(n), out(n * 12);
  for (int i = 0; i < n; ++i) in[i] = (i - 166) * 0.0311;
  EXPECT_RUNS(device.Run("double_functions", {3}, {128}, in, out, n));
  for (int i = 0; i < n; ++i) {
    double x = in[i];
    const double* o = out.data() + i * 12;
    const double e = 1e-14;
    ExpectClose(o[0], std::sin(x), e, "sin", x);
    ExpectClose(o[1], std::cos(x * 1e7), e, "cos of large", x);
    ExpectClose(o[2], std::exp(x), e, "exp", x);
    ExpectClose(o[3], std::log(std::fabs(x) + 0.5), e, "log", x);
    ExpectClose(o[4], std::pow(std::fabs(x) + 0.1, 1.7), e, "pow", x);
    ExpectClose(o[5], std::tanh(x), e, "tanh", x);
    EXPECT_EQ(o[6], 1.0 / (x + 10));
    EXPECT_EQ(o[7], std::sqrt(std::fabs(x)));
    ExpectClose(o[8], std::erf(x), e, "erf", x);
    EXPECT_EQ(o[9], std::fmod(x, 0.37));
    ExpectClose(o[10], x / 3.7 + 1 / std::sqrt(std::fabs(x) + 1), e, "rsqrt", x);
    volatile double y = x;
    std::fesetround(FE_TOWARDZERO);
    volatile double rz = y + 1e-17;
    std::fesetround(FE_UPWARD);
    volatile double ru = y / 3.0;
    std::fesetround(FE_TONEAREST);
    EXPECT_EQ(o[11], std::fma(x, x, -1.0) + rz + ru) << x;
  }
}

TEST_P(Math, RoundsAsAsked) {
  const int n = 64;
  Array<float> in(n), out(n * 12);
  for (int i = 0; i < n; ++i) in[i] = static_cast<float>(i - 31) * 0.0731f;
  EXPECT_RUNS(device.Run("rounding", {1}, {64}, in, out, n));
  for (int i = 0; i < n; ++i) {
    volatile float x = in[i], y = 0.1f, z = 3.0f;
    volatile int k = 16777217 + i;
    volatile double tenth = 0.1;
    const float* o = out.data() + i * 12;
    EXPECT_EQ(o[0], x + y);
    EXPECT_EQ(o[10], std::floor(x * 10) + std::ceil(x * 10));
    EXPECT_EQ(o[11], std::min(std::max(float{x}, 0.0f), 1.0f) + std::rint(x * 10));
    std::fesetround(FE_TOWARDZERO);
    EXPECT_EQ(o[1], x + y);
    EXPECT_EQ(o[6], x / z);
    EXPECT_EQ(o[8], static_cast<float>(k));
    std::fesetround(FE_UPWARD);
    EXPECT_EQ(o[2], x + y);
    EXPECT_EQ(o[4], x * y);
    EXPECT_EQ(o[9], static_cast<float>(tenth));
    std::fesetround(FE_DOWNWARD);
    EXPECT_EQ(o[3], x + y);
    EXPECT_EQ(o[5], std::fma(float{x}, float{y}, float{y}));
    volatile float a = std::fabs(x);
    EXPECT_EQ(o[7], std::sqrt(a));
    std::fesetround(FE_TONEAREST);
  }
}

uint32_t Reverse(uint32_t v) {
  uint32_t r = 0;
  for (int i = 0; i < 32; ++i) r |= (v >> i & 1) << (31 - i);
  return r;
}

template <class A>
int64_t Dot(uint32_t a, uint32_t b, uint32_t c) {
  for (int i = 0; i < 32; i += 8) {
    c += static_cast<uint32_t>(static_cast<A>(a >> i) * static_cast<A>(b >> i));
  }
  return std::is_signed_v<A> ? static_cast<int64_t>(static_cast<int32_t>(c)) : c;
}

void CheckIntegers(int i, int64_t a, int64_t b, const int64_t* o) {
  uint64_t u = static_cast<uint64_t>(a), v = static_cast<uint64_t>(b);
  auto c = static_cast<int32_t>(a), d = static_cast<int32_t>(b);
  auto e = static_cast<uint32_t>(a), f = static_cast<uint32_t>(b);
  using U = unsigned __int128;
  EXPECT_EQ(o[0], b != 0 ? a / b : 0);
  EXPECT_EQ(o[1], b != 0 ? a % b : 0);
  EXPECT_EQ(o[2], static_cast<int64_t>(v != 0 ? u / v : 0));
  EXPECT_EQ(o[3], static_cast<int64_t>(v != 0 ? u % v : 0));
  EXPECT_EQ(o[4], d != 0 ? c / d : 0);
  EXPECT_EQ(o[5], f != 0 ? e % f : 0);
  EXPECT_EQ(o[6], static_cast<int64_t>(static_cast<__int128>(a) * b >> 64));
  EXPECT_EQ(o[7], static_cast<int64_t>(static_cast<U>(u) * v >> 64));
  EXPECT_EQ(o[8], static_cast<int64_t>(c) * d >> 32);
  EXPECT_EQ(o[9], std::popcount(e) + 100 * std::popcount(u));
  EXPECT_EQ(o[10], std::countl_zero(e) + 100 * std::countl_zero(u));
  EXPECT_EQ(o[11], Reverse(e));
  EXPECT_EQ(static_cast<uint64_t>(o[12]),
            uint64_t{Reverse(e)} << 32 | Reverse(static_cast<uint32_t>(u >> 32)));
  EXPECT_EQ(o[13],
            (e != 0 ? std::countr_zero(e) + 1 : 0) + 100 * (u != 0 ? std::countr_zero(u) + 1 : 0));
  uint64_t bytes = uint64_t{f} << 32 | e;
  uint32_t permuted = 0, selectors = 0x5410 + (i & 7);
  for (int k = 0; k < 4; ++k) {
    permuted |= static_cast<uint32_t>(bytes >> (8 * (selectors >> (4 * k) & 7)) & 255) << (8 * k);
  }
  EXPECT_EQ(o[14], permuted);
  EXPECT_EQ(o[15], static_cast<uint32_t>(bytes << (i & 31) >> 32));
  EXPECT_EQ(o[16], static_cast<uint32_t>(bytes >> std::min(i, 32)));
  EXPECT_EQ(o[17], static_cast<uint32_t>(7 + std::llabs(int64_t{c} - d)));
  EXPECT_EQ(o[18], static_cast<int8_t>(a) + static_cast<uint8_t>(b) + static_cast<int16_t>(a >> 8));
  EXPECT_EQ(o[19], (e >> (i & 31)) + static_cast<uint32_t>(c >> (i & 31)) + (e << (i & 31)));
  EXPECT_EQ(o[20], a >> (i & 63));
  int64_t extremes =
      static_cast<int64_t>(static_cast<uint32_t>(std::min(c, d)) + std::max(e, f)) + std::min(a, b);
  EXPECT_EQ(o[21], extremes);
  auto absolute = static_cast<uint32_t>(c < 0 ? -c : c);
  EXPECT_EQ(o[22], static_cast<int64_t>(absolute ^ (~e & f)) | (a & 0xff00));
  EXPECT_EQ(o[23], static_cast<int64_t>(static_cast<uint32_t>(Dot<int8_t>(e, f, 5)) +
                                        static_cast<uint32_t>(Dot<uint8_t>(e, f, 5))));
}

// The sum of the differences' sizes, part by part.
template <class T>
uint32_t Distance(int32_t a, int32_t b) {
  uint32_t sum = 0;
  for (int i = 0; i < 32; i += static_cast<int>(sizeof(T)) * 8) {
    sum += static_cast<uint32_t>(std::abs(static_cast<T>(a >> i) - static_cast<T>(b >> i)));
  }
  return sum;
}

TEST_P(Math, PartsOfWords) {
  const int n = 64;
  Array<int32_t> in(2 * n);
  Array<uint32_t> out(6 * n);
  for (int i = 0; i < 2 * n; ++i) in[i] = static_cast<int32_t>(i * 0x9e3779b9u);
  EXPECT_RUNS(device.Run("parts_of_words", {1}, {64}, in, out, n));
  auto halves = [](int32_t a, int32_t b, auto choose) {
    auto low = std::max<int16_t>(choose(static_cast<int16_t>(a), static_cast<int16_t>(b)), 0);
    auto high =
        std::max<int16_t>(choose(static_cast<int16_t>(a >> 16), static_cast<int16_t>(b >> 16)), 0);
    return static_cast<uint32_t>(high) << 16 | static_cast<uint32_t>(low);
  };
  auto larger = [](int16_t a, int16_t b) { return a > b ? a : b; };
  auto smaller = [](int16_t a, int16_t b) { return a < b ? a : b; };
  for (int i = 0; i < n; ++i) {
    int32_t a = in[2 * i], b = in[2 * i + 1];
    EXPECT_EQ(out[6 * i], static_cast<uint32_t>(std::max({a, b, 0})));
    EXPECT_EQ(out[6 * i + 1], static_cast<uint32_t>(std::max(std::min(a, b), 0)));
    EXPECT_EQ(out[6 * i + 2], halves(a, b, larger)) << a << " " << b;
    EXPECT_EQ(out[6 * i + 3], halves(a, b, smaller)) << a << " " << b;
    EXPECT_EQ(out[6 * i + 4], Distance<uint16_t>(a, b) + 3 * Distance<int16_t>(a, b));
    EXPECT_EQ(out[6 * i + 5], Distance<uint8_t>(a, b) + 3 * Distance<int8_t>(a, b));
  }
}

TEST_P(Math, Integers) {
  const int n = 200;
  Array<int64_t> in(2 * n), out(24 * n);
  uint64_t state = 88172645463325252;
  for (int i = 0; i < 2 * n; ++i) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    in[i] = static_cast<int64_t>(state) >> (i % 5 * 12);
  }
  EXPECT_RUNS(device.Run("integers", {2}, {100}, in, out, n));
  for (int i = 0; i < n; ++i) {
    SCOPED_TRACE(std::to_string(i) + ": " + std::to_string(in[2 * i]) + ", " +
                 std::to_string(in[2 * i + 1]));
    CheckIntegers(i, in[2 * i], in[2 * i + 1], out.data() + 24 * i);
    if (HasFailure()) return;
  }
}

TEST_P(Math, WideProductsAndCarryChains) {
  const int n = 96;
  Array<uint64_t> a(n), b(n), out(2 * n);
  for (int i = 0; i < n; ++i) {
    a[i] = 0x9e3779b97f4a7c15 * static_cast<uint64_t>(i + 1);
    b[i] = ~a[i] * 31;
  }
  EXPECT_RUNS(device.Run("wide_product", {1}, {96}, a, b, out, n));
  using U = unsigned __int128;
  for (int i = 0; i < n; ++i) {
    U x = static_cast<U>(a[i]) * b[i] + (static_cast<U>(a[i]) << 64 | b[i]) - 12345;
    ASSERT_EQ(out[2 * i], static_cast<uint64_t>(x));
    ASSERT_EQ(out[2 * i + 1], static_cast<uint64_t>(x >> 64));
  }
  Array<uint64_t> sum(n), difference(n);
  EXPECT_RUNS(device.Run("carry_chain", {1}, {n / 2}, a, b, sum, difference));
  for (int i = 0; i < n; i += 2) {
    U x = static_cast<U>(a[i + 1]) << 64 | a[i];
    U y = static_cast<U>(b[i + 1]) << 64 | b[i];
    ASSERT_EQ(static_cast<U>(sum[i + 1]) << 64 | sum[i], x + y);
    ASSERT_EQ(static_cast<U>(difference[i + 1]) << 64 | difference[i], x - y);
  }
}

float Bfloat(float f) {
  auto u = std::bit_cast<uint32_t>(f);
  return std::bit_cast<float>((u + 0x7fff + (u >> 16 & 1)) & 0xffff0000);
}

TEST_P(Math, Halves) {
  const int n = 100;
  Array<float> in(n), out(12 * n);
  for (int i = 0; i < n; ++i) in[i] = static_cast<float>(i - 47) * 0.173f;
  EXPECT_RUNS(device.Run("halves", {1}, {128}, in, out, n));
  using H = _Float16;
  for (int i = 0; i < n; ++i) {
    SCOPED_TRACE(in[i]);
    const float* o = out.data() + 12 * i;
    H a = static_cast<H>(in[i]), b = static_cast<H>(1.375f), low = a;
    H high = static_cast<H>(in[i] * 2);
    auto fma = [](H x, H y, H z) { return static_cast<H>(double{x} * double{y} + double{z}); };
    EXPECT_EQ(o[0], float{a});
    EXPECT_EQ(o[1], float{static_cast<H>(a + b)});
    EXPECT_EQ(o[2], float{static_cast<H>(a * b)});
    EXPECT_EQ(o[3], float{fma(a, b, a)});
    EXPECT_EQ(o[4], float{std::max(a, b)} + (a < b ? 100 : 0));
    EXPECT_EQ(o[5], float{fma(low, low, b)});
    EXPECT_EQ(o[6], float{static_cast<H>(fma(high, high, b) - high)});
    float root = float{static_cast<H>(std::sqrt(std::fabs(float{a})))};
    EXPECT_NEAR(o[7], std::exp2(float{a}) + root, 2e-3 * (std::exp2(float{a}) + root));
    EXPECT_EQ(o[8], std::trunc(float{static_cast<H>(a * b)}) + i);
    float c = Bfloat(in[i]);
    EXPECT_EQ(o[9], c);
    EXPECT_EQ(o[10], Bfloat(c + 2.5f));
    EXPECT_EQ(o[11], Bfloat(std::fma(c, c, c)) + (c > 0 ? 100 : 0));
  }
}

// Of `Word`, with `Wide` twice as long: what CHAINS of math.cu computes.
template <class Word, class Wide>
void ExpectChains(const Device& device, const char* kernel) {
  constexpr int kBits = sizeof(Word) * 8;
  const int n = 64;
  Array<Word> in(n * 5), out(n * 14);
  uint64_t random = 88172645463325252;
  for (int i = 0; i < n * 5; ++i) {
    random ^= random << 13, random ^= random >> 7, random ^= random << 17;
    const Word some[] = {0, 1, static_cast<Word>(~Word{0}), static_cast<Word>(random)};
    in[i] = some[random >> 60 & 3];
  }
  EXPECT_RUNS(device.Run(kernel, {1}, {n}, in, out));
  for (int i = 0; i < n; ++i) {
    const Word *x = in.data() + i * 5, *o = out.data() + i * 14;
    auto wide = [](Word low, Word high) { return static_cast<Wide>(high) << kBits | low; };
    const Wide a = wide(x[0], x[1]), b = wide(x[2], x[3]);
    const Wide sum = a + b, difference = a - b;
    EXPECT_EQ(o[0], static_cast<Word>(sum)) << i;
    EXPECT_EQ(o[1], static_cast<Word>(sum >> kBits)) << i;
    EXPECT_EQ(o[2], sum < a ? 1u : 0u) << i;
    EXPECT_EQ(o[3], static_cast<Word>(difference)) << i;
    EXPECT_EQ(o[4], static_cast<Word>(difference >> kBits)) << i;
    EXPECT_EQ(o[5], a >= b ? 1u : 0u) << i;
    EXPECT_EQ(o[6], static_cast<Word>(difference >> kBits)) << i;
    EXPECT_EQ(o[7], static_cast<Word>(a >= b ? Word{0} : ~Word{0})) << i;
    const Word carry = static_cast<Word>(x[0] + x[2]) < x[0] ? 1 : 0;
    EXPECT_EQ(o[9], static_cast<Word>(x[1] + static_cast<Word>(~x[3]) + carry)) << i;
    const Wide product = static_cast<Wide>(x[0]) * x[2];
    const auto high = static_cast<Word>(product >> kBits);
    const Wide plus = product + x[4];  // cannot overflow
    const Wide top = static_cast<Wide>(plus >> kBits) + x[1];
    EXPECT_EQ(o[10], static_cast<Word>(plus)) << i;
    EXPECT_EQ(o[11], static_cast<Word>(top)) << i;
    EXPECT_EQ(o[12], static_cast<Word>(x[0] * x[4] + x[2] + static_cast<Word>(top >> kBits))) << i;
    EXPECT_EQ(o[13], static_cast<Word>(high + x[1] + (x[0] >= x[2] ? 1 : 0))) << i;
  }
}

TEST_P(Math, CarriesGoOn) {
  ExpectChains<uint32_t, uint64_t>(device, "chains_of_32");
  ExpectChains<uint64_t, unsigned __int128>(device, "chains_of_64");
}

TEST_P(Math, DividesSixteenBytes) {
  using Wide = unsigned __int128;
  using Signed = __int128;
  const int n = 32;
  Array<Wide> in(n * 2), out(n * 4);
  for (unsigned i = 0; i < n; ++i) {
    auto x = Wide{0x9e3779b97f4a7c15} * (i + 1);
    in[i * 2] = i < 4 ? Wide{100 + i} : x * x >> (i % 7);
    in[i * 2 + 1] = i < 8 ? Wide{7} : (x * 31 >> (3 * i)) + 1;
    if (i % 3 == 0) in[i * 2] = ~in[i * 2];
  }
  EXPECT_RUNS(device.Run("divide_wide", {1}, {n}, in, out));
  for (int i = 0; i < n; ++i) {
    const Wide a = in[i * 2], b = in[i * 2 + 1];
    const auto c = static_cast<Signed>(a), d = static_cast<Signed>(b);
    EXPECT_TRUE(out[i * 4] == a / b && out[i * 4 + 1] == a % b) << i;
    EXPECT_TRUE(out[i * 4 + 2] == static_cast<Wide>(c / d)) << i;
    EXPECT_TRUE(out[i * 4 + 3] == static_cast<Wide>(c % d)) << i;
  }
}

TEST_P(Math, NoNumbersLookAsOnAGpu) {
  Array<float> in(3);
  in[1] = INFINITY;
  in[2] = -1;
  Array<uint32_t> out(5);
  Array<uint64_t> wide(2);
  EXPECT_RUNS(device.Run("no_numbers", {1}, {1}, in, out, wide));
  for (size_t i = 0; i < out.size(); ++i) EXPECT_EQ(out[i], 0x7fffffffu) << i;
  EXPECT_EQ(wide[0], 0xfff8000000000000u);
  EXPECT_EQ(wide[1], 0x7fffffffe0000000u);
}

}  // namespace
}  // namespace softgpu::testing
