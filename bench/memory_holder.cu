// Allocates and frees device memory by commands, a line each: "take BYTES", "free". Prints how
// long each took, with the memory cleared by a kernel of the runtime, so that it is really there.
// "touch STEP" has a kernel look at a word in each STEP bytes for what it left there the last time;
// "pinned BYTES" times a copy out of pinned memory and one into it. First it says what is free; an
// empty line ends it.
#include <cuda_runtime.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

void Check(cudaError_t code, const char* what) {
  if (code == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(code));
  std::exit(1);
}

__global__ void Touch(unsigned* words, size_t count, size_t step, unsigned last, unsigned* wrong) {
  size_t threads = static_cast<size_t>(gridDim.x) * blockDim.x;
  for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += threads) {
    if (last != 0 && words[i * step] != last + static_cast<unsigned>(i)) atomicAdd(wrong, 1);
    words[i * step] = last + 1 + static_cast<unsigned>(i);
  }
}

unsigned touches = 0;

void TouchAll(char* memory, size_t bytes, size_t step) {
  unsigned* wrong = nullptr;
  unsigned found = 0;
  Check(cudaMalloc(&wrong, sizeof(unsigned)), "cudaMalloc");
  Check(cudaMemset(wrong, 0, sizeof(unsigned)), "cudaMemset");
  const int blocks = step < 65536 ? 1024 : 1;
  Touch<<<blocks, 256>>>(reinterpret_cast<unsigned*>(memory), bytes / step, step / sizeof(unsigned),
                         touches++, wrong);
  Check(cudaMemcpy(&found, wrong, sizeof found, cudaMemcpyDeviceToHost), "cudaMemcpy");
  Check(cudaFree(wrong), "cudaFree");
  if (found == 0) return;
  std::fprintf(stderr, "%u words are not what they were\n", found);
  std::exit(1);
}

// Seconds to the device, and back.
void TimePinned(size_t bytes) {
  void *host = nullptr, *device = nullptr;
  Check(cudaMallocHost(&host, bytes), "cudaMallocHost");
  Check(cudaMalloc(&device, bytes), "cudaMalloc");
  std::memset(host, 1, bytes);
  double seconds[2] = {1e9, 1e9};
  for (int i = 0; i < 6; ++i) {
    auto begun = std::chrono::steady_clock::now();
    Check(i % 2 == 0 ? cudaMemcpy(device, host, bytes, cudaMemcpyHostToDevice)
                     : cudaMemcpy(host, device, bytes, cudaMemcpyDeviceToHost),
          "cudaMemcpy");
    std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun;
    if (took.count() < seconds[i % 2]) seconds[i % 2] = took.count();
  }
  Check(cudaFree(device), "cudaFree");
  Check(cudaFreeHost(host), "cudaFreeHost");
  std::printf("pinned %.6f %.6f\n", seconds[0], seconds[1]);
  std::fflush(stdout);
}

}  // namespace

int main() {
  size_t free = 0, total = 0;
  Check(cudaFree(nullptr), "cudaFree");
  Check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  std::printf("free %zu\n", free);
  std::fflush(stdout);
  char* memory = nullptr;
  size_t taken_bytes = 0;
  char line[64];
  while (std::fgets(line, sizeof(line), stdin) != nullptr && line[0] != '\n') {
    auto begun = std::chrono::steady_clock::now();
    if (std::strncmp(line, "take ", 5) == 0) {
      size_t bytes = std::strtoull(line + 5, nullptr, 10);
      cudaError_t code = cudaMalloc(&memory, bytes);
      if (code == cudaErrorMemoryAllocation) {
        std::printf("out of memory\n");
        std::fflush(stdout);
        continue;
      }
      Check(code, "cudaMalloc");
      taken_bytes = bytes;
      touches = 0;
      // The allocation is timed; this only shows that its last byte is there.
      auto taken = std::chrono::steady_clock::now();
      Check(cudaMemset(memory + bytes - 1, 1, 1), "cudaMemset");
      Check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
      begun += std::chrono::steady_clock::now() - taken;
    } else if (std::strncmp(line, "touch ", 6) == 0) {
      TouchAll(memory, taken_bytes, std::strtoull(line + 6, nullptr, 10));
    } else if (std::strncmp(line, "pinned ", 7) == 0) {
      TimePinned(std::strtoull(line + 7, nullptr, 10));
      continue;
    } else {
      Check(cudaFree(memory), "cudaFree");
      Check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
      memory = nullptr;
    }
    double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
    std::printf("seconds %.6f\n", seconds);
    std::fflush(stdout);
  }
  return 0;
}
