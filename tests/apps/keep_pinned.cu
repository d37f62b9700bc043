// Copies between pinned and device memory until a copy fails, says which error that was, and that
// the memory is still there; for tests that end something in the middle of it.
#include <cstdio>
#include <cstring>

#include "check.h"

int main() {
  constexpr size_t kBytes = (8 << 20) + 3;
  unsigned char *device, *up, *down;
  CHECK(cudaMalloc(&device, kBytes));
  CHECK(cudaMallocHost(&up, kBytes));
  CHECK(cudaMallocHost(&down, kBytes));
  std::memset(up, 7, kBytes);
  bool ready = false;
  while (true) {
    cudaError_t code = cudaMemcpyAsync(device, up, kBytes, cudaMemcpyHostToDevice, 0);
    if (code == cudaSuccess)
      code = cudaMemcpyAsync(down, device, kBytes, cudaMemcpyDeviceToHost, 0);
    if (code == cudaSuccess) code = cudaStreamSynchronize(0);
    if (code != cudaSuccess) {
      std::printf("%s, %d\n", cudaGetErrorName(code), up[kBytes - 1]);
      return 3;
    }
    EXPECT(std::memcmp(up, down, kBytes) == 0, "a copy");
    if (!ready) std::printf("READY\n");
    ready = true;
    std::fflush(stdout);
  }
}
