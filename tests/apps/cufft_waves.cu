// cuFFT: the spectrum of two waves has two peaks, and the way back gives the waves again.
#include <cufft.h>

#include <cmath>

#include "library_check.h"

constexpr int kSize = 1 << 14, kBatch = 8;

int main() {
  std::vector<float> waves(kSize * kBatch);
  for (int row = 0; row < kBatch; ++row) {
    for (int i = 0; i < kSize; ++i) {
      const double turn = 2 * M_PI * i / kSize;
      waves[row * kSize + i] =
          static_cast<float>(std::cos(turn * (5 + row)) + 0.5 * std::sin(turn * 1000));
    }
  }
  float* in = ToDevice(waves);
  cufftComplex* spectrum;
  constexpr int kHalf = kSize / 2 + 1;
  CHECK(cudaMalloc(&spectrum, sizeof(cufftComplex) * kHalf * kBatch));
  cufftHandle forward, back;
  CHECK_LIBRARY(cufftPlan1d(&forward, kSize, CUFFT_R2C, kBatch));
  CHECK_LIBRARY(cufftPlan1d(&back, kSize, CUFFT_C2R, kBatch));
  CHECK_LIBRARY(cufftExecR2C(forward, in, spectrum));
  const std::vector<cufftComplex> parts = ToHost(spectrum, kHalf * kBatch);
  for (int row = 0; row < kBatch; ++row) {
    const float peak = parts[row * kHalf + 5 + row].x / (kSize / 2);
    EXPECT(std::fabs(peak - 1) < 1e-4, "row %d: the peak is %g", row, peak);
  }
  PrintHash("spectrum", parts);
  CHECK_LIBRARY(cufftExecC2R(back, spectrum, in));
  const std::vector<float> again = ToHost(in, waves.size());
  for (size_t i = 0; i < waves.size(); ++i) {
    EXPECT(std::fabs(again[i] / kSize - waves[i]) < 1e-4, "place %zu", i);
  }
  PrintHash("waves", again);
  CHECK_LIBRARY(cufftDestroy(forward));
  CHECK_LIBRARY(cufftDestroy(back));
  return Pass("cufft_waves");
}
