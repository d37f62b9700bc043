// The two sides of a shared GPU: a service whose requests must be answered soon, and a batch job
// that takes what it can get.
//
//   tenant_load calibrate MS                          iterations of a kernel that takes MS alone
//   tenant_load request ITERATIONS COUNT PAUSE_US SEED   answers COUNT requests, a pause between
//   them tenant_load batch ITERATIONS SECONDS              kernels back to back, two queued
//
// A kernel's length is work, not time by the clock, so that one that is interrupted takes longer.
// The time of a request outside of its kernel, by the device's clock, is "outside": from the launch
// to its start, and from its end to the return. No two clocks are compared for it.
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

// When the first block began and the last one ended, by the device's clock (ns).
struct Span {
  unsigned long long begin, end;
};

__device__ unsigned long long Now() {
  unsigned long long now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

__global__ void Answer(float* out, long iterations, Span* span) {
  const unsigned long long begin = Now();
  float value = threadIdx.x;
  for (long i = 0; i < iterations; ++i) value = value * 0.999f + 1.0f;
  if (value == -1.0f) out[blockIdx.x] = value;
  __syncthreads();
  if (threadIdx.x != 0) return;
  atomicMin(&span->begin, begin);
  atomicMax(&span->end, Now());
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

double At(const std::vector<double>& sorted, int percent) {
  return sorted[sorted.size() * percent / 100];
}

double Variance(const std::vector<double>& values) {
  double sum = 0, squares = 0;
  for (double value : values) sum += value;
  const double mean = sum / values.size();
  for (double value : values) squares += (value - mean) * (value - mean);
  return squares / values.size();
}

int Request(const Shape& shape, float* out, long iterations, int count, int pause, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_int_distribution<int> pauses(pause / 2, pause + pause / 2);
  const std::vector<Span> unset(count + 5, Span{~0ULL, 0});
  std::vector<Span> spans(unset);
  Span* there = nullptr;
  Check(cudaMalloc(&there, unset.size() * sizeof(Span)), "cudaMalloc");
  Check(cudaMemcpy(there, unset.data(), unset.size() * sizeof(Span), cudaMemcpyDefault), "a copy");
  std::vector<double> times, outside;
  for (size_t i = 0; i < unset.size(); ++i) {
    if (i >= 5) std::this_thread::sleep_for(std::chrono::microseconds(pauses(random)));
    auto begin = Clock::now();
    Answer<<<shape.blocks, shape.threads>>>(out, iterations, there + i);
    Check(cudaDeviceSynchronize(), "a kernel");
    if (i >= 5) times.push_back(Milliseconds(Clock::now() - begin));
  }
  Check(cudaMemcpy(spans.data(), there, spans.size() * sizeof(Span), cudaMemcpyDefault), "a copy");
  for (int i = 0; i < count; ++i) {
    outside.push_back(times[i] - (spans[i + 5].end - spans[i + 5].begin) / 1e6);
  }
  const double variance = Variance(times);
  // What others had queued before this program came delays its first requests, and no later ones.
  std::vector<double> later(times.begin() + count / 4, times.end());
  std::sort(later.begin(), later.end());
  std::sort(times.begin(), times.end());
  std::sort(outside.begin(), outside.end());
  std::printf("request_p50 %.3f ms\nrequest_p99 %.3f ms\nrequest_most %.3f ms\n", At(times, 50),
              At(times, 99), times.back());
  std::printf("request_later_p99 %.3f ms\nrequest_later_variance %.6f ms2\n", At(later, 99),
              Variance(later));
  std::printf("request_variance %.6f ms2\n", variance);
  std::printf("outside_p50 %.3f ms\noutside_p99 %.3f ms\n", At(outside, 50), At(outside, 99));
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
