// Takes and frees device memory as it is told, a line at a time: "take BYTES", "free". Says how
// long each took, with the memory cleared by a kernel of the runtime, so that it is really there.
// First it says what is free; an empty line ends it.
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

}  // namespace

int main() {
  size_t free = 0, total = 0;
  Check(cudaFree(nullptr), "cudaFree");
  Check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  std::printf("free %zu\n", free);
  std::fflush(stdout);
  char* memory = nullptr;
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
      // The allocation is timed; this only shows that its last byte is there.
      auto taken = std::chrono::steady_clock::now();
      Check(cudaMemset(memory + bytes - 1, 1, 1), "cudaMemset");
      Check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
      begun += std::chrono::steady_clock::now() - taken;
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
