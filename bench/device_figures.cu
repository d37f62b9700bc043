// What one program gets that uses all devices of a host: copies between each two of them, one way
// and both ways at once; a kernel on every device and the wait for all; kernels of a given length
// on all at once. Prints "name value unit" lines.
//
//   device_figures [ITERATIONS]    of the long kernels: see tenant_load calibrate (default: none)
#include <cuda_runtime.h>

#include <cstring>
#include <string>
#include <vector>

#include "figures.h"

namespace {

using longwire::bench::Clock;
using longwire::bench::MedianTime;
using longwire::bench::Microseconds;

constexpr int kCopies = 8, kRounds = 7, kSmallRounds = 200, kLongKernels = 10;

void Check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "device_figures: %s: %s\n", what, cudaGetErrorString(error));
  std::exit(1);
}

__global__ void Work(float* out, long iterations) {
  float value = threadIdx.x;
  for (long i = 0; i < iterations; ++i) value = value * 0.999f + 1.0f;
  if (value == -1.0f) out[blockIdx.x] = value;  // never: keeps the loop
}

struct Device {
  char *from, *to;
  cudaStream_t stream;
  dim3 grid, block;
};

size_t CopyBytes(const cudaDeviceProp& device) {
  bool software = std::strstr(device.name, "Software") != nullptr;
  return software ? size_t{1} << 20 : size_t{256} << 20;
}

std::vector<Device> Prepare(int count, size_t* bytes) {
  std::vector<Device> devices(count);
  for (int i = 0; i < count; ++i) {
    Check(cudaSetDevice(i), "cudaSetDevice");
    cudaDeviceProp about{};
    Check(cudaGetDeviceProperties(&about, i), "cudaGetDeviceProperties");
    *bytes = CopyBytes(about);
    bool software = *bytes < (size_t{256} << 20);
    devices[i].grid = software ? 8 : about.multiProcessorCount;
    devices[i].block = software ? 32 : 1024;
    Check(cudaMalloc(&devices[i].from, *bytes), "cudaMalloc");
    Check(cudaMalloc(&devices[i].to, *bytes), "cudaMalloc");
    Check(cudaMemset(devices[i].from, i + 1, *bytes), "cudaMemset");
    Check(cudaStreamCreateWithFlags(&devices[i].stream, cudaStreamNonBlocking), "a stream");
    for (int j = 0; j < count; ++j) {
      int reaches = 0;
      if (i != j) Check(cudaDeviceCanAccessPeer(&reaches, i, j), "cudaDeviceCanAccessPeer");
      if (reaches != 0) Check(cudaDeviceEnablePeerAccess(j, 0), "cudaDeviceEnablePeerAccess");
    }
    Check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  }
  return devices;
}

void Wait(const std::vector<Device>& devices) {
  for (size_t i = 0; i < devices.size(); ++i) {
    Check(cudaSetDevice(static_cast<int>(i)), "cudaSetDevice");
    Check(cudaStreamSynchronize(devices[i].stream), "cudaStreamSynchronize");
  }
}

// Whether the first and last byte are those of the device that they come from.
void Expect(const Device& at, int from, size_t bytes) {
  for (size_t offset : {size_t{0}, bytes - 1}) {
    char found = 0;
    Check(cudaMemcpy(&found, at.to + offset, 1, cudaMemcpyDeviceToHost), "reading a copy");
    if (found == static_cast<char>(from + 1)) continue;
    std::fprintf(stderr, "device_figures: wrong bytes from device %d\n", from);
    std::exit(1);
  }
}

void Pair(const std::vector<Device>& devices, int i, int j, size_t bytes) {
  auto copy = [&](int from, int to) {
    Check(cudaMemcpyPeerAsync(devices[to].to, to, devices[from].from, from, bytes,
                              devices[from].stream),
          "cudaMemcpyPeerAsync");
  };
  double one = MedianTime(kRounds, [&] {
    for (int k = 0; k < kCopies; ++k) copy(i, j);
    Wait(devices);
  });
  Expect(devices[j], i, bytes);
  std::printf("peer_%d_%d %.2f GB/s\n", i, j, kCopies * bytes / one / 1e3);
  if (i > j) return;
  double both = MedianTime(kRounds, [&] {
    for (int k = 0; k < kCopies; ++k) copy(i, j), copy(j, i);
    Wait(devices);
  });
  std::printf("peer_both_%d_%d %.2f GB/s\n", i, j, 2 * kCopies * bytes / both / 1e3);
  double small = MedianTime(kSmallRounds, [&] {
    Check(cudaMemcpyPeerAsync(devices[j].to, j, devices[i].from, i, 16, devices[i].stream),
          "a small copy");
    Check(cudaStreamSynchronize(devices[i].stream), "cudaStreamSynchronize");
  });
  std::printf("peer_small_%d_%d %.2f us\n", i, j, small);
}

void Launch(const std::vector<Device>& devices, long iterations) {
  for (size_t i = 0; i < devices.size(); ++i) {
    Check(cudaSetDevice(static_cast<int>(i)), "cudaSetDevice");
    Work<<<devices[i].grid, devices[i].block, 0, devices[i].stream>>>(
        reinterpret_cast<float*>(devices[i].to), iterations);
    Check(cudaGetLastError(), "a kernel");
  }
}

}  // namespace

int main(int count, char** words) {
  int found = 0;
  Check(cudaGetDeviceCount(&found), "cudaGetDeviceCount");
  size_t bytes = 0;
  std::vector<Device> devices = Prepare(found, &bytes);
  std::printf("devices %d 1\n", found);
  for (int i = 0; i < found; ++i) {
    for (int j = 0; j < found; ++j) {
      if (i != j) Pair(devices, i, j, bytes);
    }
  }
  std::printf("launch_on_all %.2f us\n", MedianTime(kSmallRounds, [&] {
                Launch(devices, 1);
                Wait(devices);
              }));
  long iterations = count > 1 ? std::atol(words[1]) : 0;
  if (iterations == 0) return 0;
  double took = MedianTime(3, [&] {
    for (int i = 0; i < kLongKernels; ++i) Launch(devices, iterations);
    Wait(devices);
  });
  std::printf("kernels_on_all %.2f 1/s\n", found * kLongKernels / took * 1e6);
  return 0;
}
