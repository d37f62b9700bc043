// The two sides of a shared GPU: a service whose requests must be answered soon, and a batch job
// that takes what it can get.
//
//   tenant_load calibrate MS                          iterations of a kernel that takes MS alone
//   tenant_load request ITERATIONS COUNT PAUSE_US SEED   answers COUNT requests, a pause between
//   them tenant_load batch ITERATIONS SECONDS              kernels back to back, two queued
//
// A kernel's length is work, not time by the clock, so that one that is interrupted takes longer.
// Prints "name value unit" lines.
#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

void Check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "tenant_load: %s: %s\n", what, cudaGetErrorString(error));
  std::exit(1);
}

__global__ void Work(float* out, long iterations) {
  float value = threadIdx.x;
  for (long i = 0; i < iterations; ++i) value = value * 0.999f + 1.0f;
  if (value == -1.0f) out[blockIdx.x] = value;  // never: keeps the loop
}

struct Shape {
  int blocks = 1;
  int threads = 1;
};

// All of a real device; a little of the software device, where every thread is interpreted.
Shape WholeDevice() {
  cudaDeviceProp device{};
  Check(cudaGetDeviceProperties(&device, 0), "cudaGetDeviceProperties");
  if (std::strstr(device.name, "Software") != nullptr) return {8, 32};
  return {device.multiProcessorCount, 1024};
}

double Milliseconds(Clock::duration time) {
  return std::chrono::duration<double, std::milli>(time).count();
}

double TimeOf(const Shape& shape, float* out, long iterations) {
  auto begin = Clock::now();
  Work<<<shape.blocks, shape.threads>>>(out, iterations);
  Check(cudaDeviceSynchronize(), "a kernel");
  return Milliseconds(Clock::now() - begin);
}

int Calibrate(const Shape& shape, float* out, double wanted) {
  long iterations = 1000;
  TimeOf(shape, out, iterations);
  while (TimeOf(shape, out, iterations) < wanted / 2 && iterations < (1L << 40)) iterations *= 2;
  for (int i = 0; i < 3; ++i) {
    std::vector<double> times;
    for (int j = 0; j < 5; ++j) times.push_back(TimeOf(shape, out, iterations));
    std::sort(times.begin(), times.end());
    iterations = std::max(1L, static_cast<long>(iterations * wanted / times[2]));
  }
  std::printf("iterations %ld 1\n", iterations);
  return 0;
}

int Request(const Shape& shape, float* out, long iterations, int count, int pause, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_int_distribution<int> pauses(pause / 2, pause + pause / 2);
  for (int i = 0; i < 5; ++i) TimeOf(shape, out, iterations);
  std::vector<double> times;
  for (int i = 0; i < count; ++i) {
    std::this_thread::sleep_for(std::chrono::microseconds(pauses(random)));
    times.push_back(TimeOf(shape, out, iterations));
  }
  std::sort(times.begin(), times.end());
  std::printf("request_p50 %.3f ms\n", times[times.size() / 2]);
  std::printf("request_p99 %.3f ms\n", times[times.size() * 99 / 100]);
  std::printf("request_most %.3f ms\n", times.back());
  return 0;
}

int Batch(const Shape& shape, float* out, long iterations, double seconds) {
  cudaEvent_t done[2];
  for (cudaEvent_t& event : done) Check(cudaEventCreate(&event), "cudaEventCreate");
  auto begin = Clock::now();
  long kernels = 0;
  while (Milliseconds(Clock::now() - begin) < seconds * 1000) {
    cudaEvent_t event = done[kernels % 2];
    if (kernels >= 2) Check(cudaEventSynchronize(event), "a kernel");
    Work<<<shape.blocks, shape.threads>>>(out, iterations);
    Check(cudaEventRecord(event), "cudaEventRecord");
    ++kernels;
  }
  Check(cudaDeviceSynchronize(), "the last kernels");
  std::printf("batch_kernels %.2f 1/s\n", kernels / (Milliseconds(Clock::now() - begin) / 1000));
  return 0;
}

}  // namespace

int main(int count, char** words) {
  const char* mode = count > 2 ? words[1] : "";
  Shape shape = WholeDevice();
  float* out = nullptr;
  Check(cudaMalloc(&out, shape.blocks * sizeof(float)), "cudaMalloc");
  if (std::strcmp(mode, "calibrate") == 0 && count == 3) {
    return Calibrate(shape, out, std::atof(words[2]));
  }
  if (std::strcmp(mode, "request") == 0 && count == 6) {
    return Request(shape, out, std::atol(words[2]), std::max(1, std::atoi(words[3])),
                   std::atoi(words[4]), std::atoi(words[5]));
  }
  if (std::strcmp(mode, "batch") == 0 && count == 4) {
    return Batch(shape, out, std::atol(words[2]), std::atof(words[3]));
  }
  std::fprintf(stderr,
               "usage: tenant_load calibrate MS | request ITERATIONS COUNT PAUSE_US SEED |\n"
               "       batch ITERATIONS SECONDS\n");
  return 2;
}
