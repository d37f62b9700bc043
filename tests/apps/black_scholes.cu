// Prices European options in float with the device's expf, logf and sqrtf; the host's double
// result must agree to 2e-4 of the strike's scale, the accuracy of the float formula itself.
#include <cmath>
#include <vector>

#include "check.h"

constexpr float kRate = 0.02f, kVolatility = 0.30f;

__device__ float NormalDistribution(float d) {
  const float k = 1.0f / (1.0f + 0.2316419f * fabsf(d));
  const float polynomial =
      k * (0.31938153f +
           k * (-0.356563782f + k * (1.781477937f + k * (-1.821255978f + k * 1.330274429f))));
  const float tail = 0.39894228f * expf(-0.5f * d * d) * polynomial;
  return d > 0 ? 1.0f - tail : tail;
}

__global__ void Price(const float* spot, const float* strike, const float* years, float* call,
                      float* put, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const float root = sqrtf(years[i]);
  const float d1 =
      (logf(spot[i] / strike[i]) + (kRate + 0.5f * kVolatility * kVolatility) * years[i]) /
      (kVolatility * root);
  const float d2 = d1 - kVolatility * root;
  const float discount = expf(-kRate * years[i]);
  const float n1 = NormalDistribution(d1), n2 = NormalDistribution(d2);
  call[i] = spot[i] * n1 - strike[i] * discount * n2;
  put[i] = strike[i] * discount * (1.0f - n2) - spot[i] * (1.0f - n1);
}

static double HostNormal(double d) { return 0.5 * std::erfc(-d / std::sqrt(2.0)); }

int main() {
  const int count = 20000;
  const size_t bytes = count * sizeof(float);
  std::vector<float> spot(count), strike(count), years(count), call(count), put(count);
  for (int i = 0; i < count; ++i) {
    spot[i] = 5.0f + (i * 37 % 2500) / 100.0f;
    strike[i] = 1.0f + (i * 53 % 9900) / 100.0f;
    years[i] = 0.25f + (i * 29 % 975) / 100.0f;
  }
  float* arrays[5];
  for (float*& array : arrays) CHECK(cudaMalloc(&array, bytes));
  CHECK(cudaMemcpy(arrays[0], spot.data(), bytes, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(arrays[1], strike.data(), bytes, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(arrays[2], years.data(), bytes, cudaMemcpyHostToDevice));
  Price<<<(count + 127) / 128, 128>>>(arrays[0], arrays[1], arrays[2], arrays[3], arrays[4], count);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(call.data(), arrays[3], bytes, cudaMemcpyDeviceToHost));
  CHECK(cudaMemcpy(put.data(), arrays[4], bytes, cudaMemcpyDeviceToHost));
  for (int i = 0; i < count; ++i) {
    const double root = std::sqrt(years[i]), volatility = kVolatility, rate = kRate;
    const double d1 = (std::log(double{spot[i]} / strike[i]) +
                       (rate + 0.5 * volatility * volatility) * years[i]) /
                      (volatility * root);
    const double d2 = d1 - volatility * root, discount = std::exp(-rate * years[i]);
    const double expected_call = spot[i] * HostNormal(d1) - strike[i] * discount * HostNormal(d2);
    const double expected_put = strike[i] * discount * HostNormal(-d2) - spot[i] * HostNormal(-d1);
    EXPECT(std::fabs(call[i] - expected_call) < 2e-4, "call %d is %g, not %g", i, call[i],
           expected_call);
    EXPECT(std::fabs(put[i] - expected_put) < 2e-4, "put %d is %g, not %g", i, put[i],
           expected_put);
  }
  for (float* array : arrays) CHECK(cudaFree(array));
  return Pass("black_scholes");
}
