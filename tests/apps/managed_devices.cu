// Managed memory and variables and pinned memory that kernels of two devices use in turns.
#include <cuda_runtime.h>

#include "check.h"

constexpr int kCount = 100000;

__managed__ int variable[kCount];

__global__ void AddToAll(int* values, int amount) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < kCount) values[i] += amount;
}

static void Turns(int* values, const char* what) {
  for (int i = 0; i < kCount; ++i) values[i] = i;
  int expected = 0;
  for (int round = 0; round < 4; ++round) {
    const int device = round % 2;
    CHECK(cudaSetDevice(device));
    AddToAll<<<(kCount + 255) / 256, 256>>>(values, 10 + device);
    CHECK(cudaDeviceSynchronize());
    expected += 10 + device;
    for (int i = 0; i < kCount; ++i) {
      EXPECT(values[i] == i + expected, "%s, round %d: element %d is %d", what, round, i,
             values[i]);
      values[i] += 1;
    }
    ++expected;
  }
}

int main() {
  for (int owner = 0; owner < 2; ++owner) {
    CHECK(cudaSetDevice(owner));
    int *managed = nullptr, *pinned = nullptr;
    CHECK(cudaMallocManaged(&managed, kCount * sizeof(int)));
    CHECK(cudaHostAlloc(&pinned, kCount * sizeof(int), cudaHostAllocPortable));
    Turns(managed, "managed memory");
    Turns(pinned, "pinned memory");
    Turns(variable, "a managed variable");
    CHECK(cudaFree(managed));
    CHECK(cudaFreeHost(pinned));
  }
  return Pass("managed_devices");
}
