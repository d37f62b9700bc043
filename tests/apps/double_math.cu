// Double precision: basic operations must equal the host's bit for bit, the library's functions
// must agree to a few units in the last place; and 64-bit integers.
#include <cmath>
#include <cstdint>
#include <vector>

#include "check.h"

constexpr int kCount = 2000, kExact = 6, kClose = 7;

__global__ void Compute(const double* x, const double* y, double* exact, double* close,
                        int64_t* whole) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= kCount) return;
  const double a = x[i], b = y[i];
  exact[i * kExact] = a + b;
  exact[i * kExact + 1] = a * b;
  exact[i * kExact + 2] = a / b;
  exact[i * kExact + 3] = sqrt(b);
  exact[i * kExact + 4] = fma(a, b, -a);
  exact[i * kExact + 5] = floor(a) + fmin(a, b) - fabs(a);
  close[i * kClose] = exp(a);
  close[i * kClose + 1] = log(b);
  close[i * kClose + 2] = sin(a);
  close[i * kClose + 3] = cos(a * 1000);
  close[i * kClose + 4] = pow(b, a);
  close[i * kClose + 5] = tanh(a);
  close[i * kClose + 6] = atan2(a, b);
  const int64_t p = static_cast<int64_t>(a * 1e12), q = static_cast<int64_t>(b * 1e3) + 1;
  whole[i] = p * q + p / q - p % q + (p >> 3) + __popcll(p) + __mul64hi(p, q);
}

static int64_t HostWhole(double a, double b) {
  const int64_t p = static_cast<int64_t>(a * 1e12), q = static_cast<int64_t>(b * 1e3) + 1;
  const uint64_t product = static_cast<uint64_t>(p) * static_cast<uint64_t>(q);
  const int64_t high = static_cast<int64_t>((static_cast<__int128>(p) * q) >> 64);
  return static_cast<int64_t>(product + p / q - p % q + (p >> 3) +
                              __builtin_popcountll(static_cast<uint64_t>(p)) + high);
}

int main() {
  std::vector<double> x(kCount), y(kCount), exact(kCount * kExact), close(kCount * kClose);
  std::vector<int64_t> whole(kCount);
  for (int i = 0; i < kCount; ++i) {
    x[i] = (i - kCount / 2) / 97.0;
    y[i] = 0.01 + i / 31.0;
  }
  double *device_x, *device_y, *device_exact, *device_close;
  int64_t* device_whole;
  CHECK(cudaMalloc(&device_x, kCount * sizeof(double)));
  CHECK(cudaMalloc(&device_y, kCount * sizeof(double)));
  CHECK(cudaMalloc(&device_exact, exact.size() * sizeof(double)));
  CHECK(cudaMalloc(&device_close, close.size() * sizeof(double)));
  CHECK(cudaMalloc(&device_whole, kCount * sizeof(int64_t)));
  CHECK(cudaMemcpy(device_x, x.data(), kCount * sizeof(double), cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(device_y, y.data(), kCount * sizeof(double), cudaMemcpyHostToDevice));
  Compute<<<(kCount + 63) / 64, 64>>>(device_x, device_y, device_exact, device_close, device_whole);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(exact.data(), device_exact, exact.size() * sizeof(double),
                   cudaMemcpyDeviceToHost));
  CHECK(cudaMemcpy(close.data(), device_close, close.size() * sizeof(double),
                   cudaMemcpyDeviceToHost));
  CHECK(cudaMemcpy(whole.data(), device_whole, kCount * sizeof(int64_t), cudaMemcpyDeviceToHost));
  for (int i = 0; i < kCount; ++i) {
    const double a = x[i], b = y[i];
    const double expected[kExact] = {a + b,
                                     a * b,
                                     a / b,
                                     std::sqrt(b),
                                     std::fma(a, b, -a),
                                     std::floor(a) + std::fmin(a, b) - std::fabs(a)};
    const double about[kClose] = {std::exp(a),    std::log(b),  std::sin(a),     std::cos(a * 1000),
                                  std::pow(b, a), std::tanh(a), std::atan2(a, b)};
    for (int k = 0; k < kExact; ++k) {
      EXPECT(exact[i * kExact + k] == expected[k],
             "exact result %d of (%g, %g) is %.17g, not %.17g", k, a, b, exact[i * kExact + k],
             expected[k]);
    }
    for (int k = 0; k < kClose; ++k) {
      const double error = std::fabs(close[i * kClose + k] - about[k]);
      EXPECT(error <= 1e-15 * 4 * (std::fabs(about[k]) + 1e-3),
             "function %d of (%g, %g): %.17g, not %.17g", k, a, b, close[i * kClose + k], about[k]);
    }
    EXPECT(whole[i] == HostWhole(a, b), "integers of (%g, %g): %lld, not %lld", a, b,
           static_cast<long long>(whole[i]), static_cast<long long>(HostWhole(a, b)));
  }
  return Pass("double_math");
}
