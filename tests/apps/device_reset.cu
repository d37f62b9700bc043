// After cudaDeviceReset the device is as it was at the program's start: variables have their first
// values, limits their defaults, and kernels can be launched as before. More than once.
#include "check.h"

__device__ unsigned counter = 7;
__constant__ unsigned constant = 9;
__managed__ unsigned managed = 11;

__global__ void Change() {
  ++counter;
  ++managed;
}

__global__ void Get(unsigned* values) {
  values[0] = counter;
  values[1] = constant;
  values[2] = managed;
}

int main() {
  size_t stack_at_first = 0, heap_at_first = 0;
  CHECK(cudaDeviceGetLimit(&stack_at_first, cudaLimitStackSize));
  CHECK(cudaDeviceGetLimit(&heap_at_first, cudaLimitMallocHeapSize));
  for (int life = 0; life < 3; ++life) {
    size_t stack = 0, heap = 0;
    CHECK(cudaDeviceGetLimit(&stack, cudaLimitStackSize));
    CHECK(cudaDeviceGetLimit(&heap, cudaLimitMallocHeapSize));
    EXPECT(stack == stack_at_first && heap == heap_at_first, "life %d: %zu, %zu", life, stack,
           heap);
    CHECK(cudaDeviceSetLimit(cudaLimitStackSize, 8192));
    CHECK(cudaDeviceSetLimit(cudaLimitMallocHeapSize, size_t{32} << 20));
    unsigned* values = nullptr;
    unsigned got[3] = {};
    CHECK(cudaMalloc(&values, sizeof(got)));
    Get<<<1, 1>>>(values);
    CHECK(cudaMemcpy(got, values, sizeof(got), cudaMemcpyDefault));
    EXPECT(got[0] == 7 && got[1] == 9 && got[2] == 11, "life %d: %u, %u, %u", life, got[0], got[1],
           got[2]);
    for (int i = 0; i < 3; ++i) Change<<<1, 1>>>();
    unsigned other = 100;
    CHECK(cudaMemcpyToSymbol(constant, &other, sizeof(other)));
    Get<<<1, 1>>>(values);
    CHECK(cudaMemcpy(got, values, sizeof(got), cudaMemcpyDefault));
    EXPECT(got[0] == 10 && got[1] == 100 && got[2] == 14, "life %d: %u, %u, %u", life, got[0],
           got[1], got[2]);
    CHECK(cudaDeviceReset());
  }
  return Pass("device_reset");
}
