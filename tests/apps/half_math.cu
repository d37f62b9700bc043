// Half precision, single and in pairs. The host rounds every operation from float, which has more
// than twice the digits of half, so the results must match bit for bit.
#include <cuda_fp16.h>

#include <vector>

#include "check.h"

constexpr int kCount = 2048, kResults = 6;

__global__ void Compute(const __half* x, const __half* y, __half* results, __half2* pairs) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const __half a = x[i], b = y[i];
  results[i * kResults] = __hadd(a, b);
  results[i * kResults + 1] = __hsub(a, b);
  results[i * kResults + 2] = __hmul(a, b);
  results[i * kResults + 3] = __hlt(a, b) ? a : b;
  results[i * kResults + 4] = __hneg(a);
  results[i * kResults + 5] = __float2half_rn(__half2float(a) * 3.0f + 0.125f);
  pairs[i] = __hfma2(__halves2half2(a, b), __halves2half2(b, a), __float2half2_rn(1.0f));
}

static bool Same(__half a, __half b) {
  return static_cast<__half_raw>(a).x == static_cast<__half_raw>(b).x;
}

int main() {
  std::vector<__half> x(kCount), y(kCount), results(kCount * kResults);
  std::vector<__half2> pairs(kCount);
  for (int i = 0; i < kCount; ++i) {
    x[i] = __float2half_rn((i - 1000) / 8.0f);
    y[i] = __float2half_rn(1.0f + (i % 37) / 16.0f);
  }
  __half *device_x, *device_y, *device_results;
  __half2* device_pairs;
  CHECK(cudaMalloc(&device_x, kCount * sizeof(__half)));
  CHECK(cudaMalloc(&device_y, kCount * sizeof(__half)));
  CHECK(cudaMalloc(&device_results, results.size() * sizeof(__half)));
  CHECK(cudaMalloc(&device_pairs, kCount * sizeof(__half2)));
  CHECK(cudaMemcpy(device_x, x.data(), kCount * sizeof(__half), cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(device_y, y.data(), kCount * sizeof(__half), cudaMemcpyHostToDevice));
  Compute<<<kCount / 128, 128>>>(device_x, device_y, device_results, device_pairs);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(results.data(), device_results, results.size() * sizeof(__half),
                   cudaMemcpyDeviceToHost));
  CHECK(cudaMemcpy(pairs.data(), device_pairs, kCount * sizeof(__half2), cudaMemcpyDeviceToHost));
  for (int i = 0; i < kCount; ++i) {
    const float a = __half2float(x[i]), b = __half2float(y[i]);
    const __half expected[kResults] = {__float2half_rn(a + b), __float2half_rn(a - b),
                                       __float2half_rn(a * b), a < b ? x[i] : y[i],
                                       __float2half_rn(-a),    __float2half_rn(a * 3.0f + 0.125f)};
    for (int k = 0; k < kResults; ++k) {
      EXPECT(Same(results[i * kResults + k], expected[k]), "result %d of (%g, %g) is %g, not %g", k,
             a, b, __half2float(results[i * kResults + k]), __half2float(expected[k]));
    }
    // The product of two halves is exact in float; the sum with one is rounded once to half.
    const __half product_plus_one = __double2half(static_cast<double>(a) * b + 1.0);
    EXPECT(Same(__low2half(pairs[i]), product_plus_one) &&
               Same(__high2half(pairs[i]), product_plus_one),
           "pair of (%g, %g) is (%g, %g), not %g", a, b, __low2float(pairs[i]),
           __high2float(pairs[i]), __half2float(product_plus_one));
  }
  return Pass("half_math");
}
