// Copies up and down until a copy fails, and says which error that was; for tests that end
// something in the middle of it.
#include <cstdio>
#include <vector>

#include "check.h"

int main() {
  constexpr size_t kBytes = (8 << 20) + 3;
  unsigned char* device = nullptr;
  CHECK(cudaMalloc(&device, kBytes));
  std::vector<unsigned char> source(kBytes, 7), back(kBytes);
  CHECK(cudaMemcpy(device, source.data(), kBytes, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(back.data(), device, kBytes, cudaMemcpyDeviceToHost));
  EXPECT(back == source, "the first copy");
  std::printf("READY\n");
  std::fflush(stdout);
  while (true) {
    cudaError_t code = cudaMemcpy(device, source.data(), kBytes, cudaMemcpyHostToDevice);
    if (code == cudaSuccess) {
      code = cudaMemcpy(back.data(), device, kBytes, cudaMemcpyDeviceToHost);
    }
    if (code != cudaSuccess) {
      std::printf("%s\n", cudaGetErrorName(code));
      return 3;
    }
    EXPECT(back == source, "a later copy");
  }
}
