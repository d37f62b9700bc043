// After cudaDeviceReset the device is as it was at the program's start: variables have their first
// values, limits their defaults, and kernels can be launched as before. More than once. Managed
// variables are not the device's: they keep their values, and the program may use them in between.
#include "check.h"

__device__ unsigned counter = 7;
__constant__ unsigned constant = 9;
__managed__ unsigned managed = 11;
__managed__ unsigned far_away[3000];

__global__ void Change() {
  ++counter;
  ++managed;
  far_away[2999] += 5;
}

__global__ void Get(unsigned* values) {
  values[0] = counter;
  values[1] = constant;
  values[2] = managed;
  values[3] = far_away[2999];
}

struct Values {
  unsigned counter, constant, managed, far_away;
};

static Values ReadOnDevice() {
  unsigned* values = nullptr;
  Values got = {};
  CHECK(cudaMalloc(&values, sizeof(got)));
  Get<<<1, 1>>>(values);
  CHECK(cudaMemcpy(&got, values, sizeof(got), cudaMemcpyDefault));
  CHECK(cudaFree(values));
  return got;
}

static void ExpectOnDevice(const Values& expected, int life) {
  Values got = ReadOnDevice();
  EXPECT(memcmp(&got, &expected, sizeof(got)) == 0, "life %d: %u, %u, %u, %u", life, got.counter,
         got.constant, got.managed, got.far_away);
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
    const unsigned before = 11 + 1103 * life, far_before = 115 * life;
    ExpectOnDevice({7, 9, before, far_before}, life);
    for (int i = 0; i < 3; ++i) Change<<<1, 1>>>();
    unsigned other = 100;
    CHECK(cudaMemcpyToSymbol(constant, &other, sizeof(other)));
    ExpectOnDevice({10, 100, before + 3, far_before + 15}, life);
    managed += 100;                     // which no work sees before the end
    if (life == 1) Change<<<1, 1>>>();  // and which the end must wait for
    CHECK(cudaDeviceReset());
    unsigned last = life == 1 ? 1 : 0;
    EXPECT(managed == before + 103 + last && far_away[2999] == far_before + 15 + 5 * last,
           "life %d: %u, %u after the end", life, managed, far_away[2999]);
    managed += 1000 - last;
    far_away[2999] += 100 - 5 * last;
  }
  return Pass("device_reset");
}
