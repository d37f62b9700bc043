// cuRAND: the same seed gives the same numbers, with about the right mean and spread.
#include <curand.h>

#include <cmath>

#include "library_check.h"

constexpr size_t kCount = 1 << 20;

static void Draw(const char* name, curandRngType_t kind) {
  curandGenerator_t generator;
  float* numbers;
  CHECK(cudaMalloc(&numbers, kCount * sizeof(float)));
  CHECK_LIBRARY(curandCreateGenerator(&generator, kind));
  CHECK_LIBRARY(curandSetPseudoRandomGeneratorSeed(generator, 1234));
  CHECK_LIBRARY(curandGenerateNormal(generator, numbers, kCount, 3.0f, 2.0f));
  const std::vector<float> values = ToHost(numbers, kCount);
  double sum = 0, squares = 0;
  for (float value : values) {
    sum += value;
    squares += (value - 3.0) * (value - 3.0);
  }
  EXPECT(std::fabs(sum / kCount - 3) < 0.02, "%s: mean %g", name, sum / kCount);
  EXPECT(std::fabs(squares / kCount - 4) < 0.05, "%s: variance %g", name, squares / kCount);
  PrintHash(name, values);
  CHECK_LIBRARY(curandDestroyGenerator(generator));
  CHECK(cudaFree(numbers));
}

int main() {
  Draw("xorwow", CURAND_RNG_PSEUDO_XORWOW);
  Draw("philox", CURAND_RNG_PSEUDO_PHILOX4_32_10);
  Draw("mtgp32", CURAND_RNG_PSEUDO_MTGP32);
  return Pass("curand_numbers");
}
