// For the tests of what a server shows: allocates a little on every device that it sees, says READY
// and waits for a signal that ends it.
#include <unistd.h>

#include "check.h"

int main() {
  int count = 0;
  CHECK(cudaGetDeviceCount(&count));
  for (int i = 0; i < count; ++i) {
    void* memory;
    CHECK(cudaSetDevice(i));
    CHECK(cudaMalloc(&memory, 1 << 20));
    CHECK(cudaMemset(memory, 1, 1 << 20));
    CHECK(cudaDeviceSynchronize());
  }
  std::printf("READY\n");
  std::fflush(stdout);
  pause();
  return 1;
}
