// Registered memory that kernels reach and that the program frees without unregistering it: a
// mistake, which does no harm as long as nobody uses the memory.
#include <sys/mman.h>

#include "check.h"

__global__ void Set(unsigned* value, unsigned to) { *value = to; }

int main() {
  constexpr size_t kBytes = size_t{1} << 20;
  void* memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  EXPECT(memory != MAP_FAILED, "no memory");
  CHECK(cudaHostRegister(memory, kBytes, cudaHostRegisterMapped));
  unsigned *there = nullptr, *value = nullptr, got = 0;
  CHECK(cudaHostGetDevicePointer(&there, memory, 0));
  CHECK(cudaMalloc(&value, sizeof(*value)));
  Set<<<1, 1>>>(there, 4);
  CHECK(cudaDeviceSynchronize());
  EXPECT(*static_cast<unsigned*>(memory) == 4, "%u", *static_cast<unsigned*>(memory));
  munmap(memory, kBytes);
  for (unsigned i = 5; i < 8; ++i) {
    Set<<<1, 1>>>(there, i);
    Set<<<1, 1>>>(value, i);
    CHECK(cudaMemcpy(&got, value, sizeof(got), cudaMemcpyDefault));
    EXPECT(got == i, "%u", got);
  }
  return Pass("freed_registered");
}
