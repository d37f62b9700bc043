// For the tests of what happens beside a program: says READY, then computes and checks in a loop
// until the given number of seconds is over. With "hold" it keeps memory and an endless queue
// instead, until it is killed; with "until-error" it prints the first error and ends well.
#include <chrono>
#include <cstring>
#include <thread>

#include "check.h"

constexpr int kCount = 4096;

__global__ void Mix(unsigned* values, unsigned addend) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  values[i] = values[i] * 3 + addend;
}

// A part of the device's time that shows, also where the device is fast.
__global__ void MixLong(unsigned* values, int turns) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned value = values[i];
  for (int turn = 0; turn < turns; ++turn) value = value * 3 + turn;
  values[i] = value;
}

static cudaError_t Round(unsigned* values, unsigned round) {
  static unsigned host[kCount];
  for (int i = 0; i < kCount; ++i) host[i] = i + round;
  cudaError_t code = cudaMemcpy(values, host, sizeof host, cudaMemcpyHostToDevice);
  if (code != cudaSuccess) return code;
  Mix<<<kCount / 128, 128>>>(values, round);
  code = cudaMemcpy(host, values, sizeof host, cudaMemcpyDeviceToHost);
  if (code != cudaSuccess) return code;
  for (int i = 0; i < kCount; ++i) {
    EXPECT(host[i] == (i + round) * 3 + round, "round %u, element %d is %u", round, i, host[i]);
  }
  return cudaSuccess;
}

int main(int count, char** arguments) {
  const char* mode = count > 1 ? arguments[1] : "2";
  unsigned* values;
  CHECK(cudaMalloc(&values, kCount * sizeof(unsigned)));
  CHECK(Round(values, 0));
  if (std::strcmp(mode, "hold") == 0) {
    void* held;
    CHECK(cudaMalloc(&held, 64 << 20));
    CHECK(cudaMemset(held, 1, 64 << 20));
  }
  std::printf("READY\n");
  std::fflush(stdout);
  if (std::strcmp(mode, "hold") == 0) {
    for (;;) {
      MixLong<<<1, 128>>>(values, 12000);
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }
  const bool until_error = std::strcmp(mode, "until-error") == 0;
  const int seconds = until_error ? 60 : std::atoi(mode);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  for (unsigned round = 1; std::chrono::steady_clock::now() < end; ++round) {
    const cudaError_t code = Round(values, round);
    if (code != cudaSuccess && until_error) {
      std::printf("ERROR %d\n", code);
      return Pass("steady");
    }
    CHECK(code);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  EXPECT(!until_error, "no error came within %d seconds", seconds);
  return Pass("steady");
}
