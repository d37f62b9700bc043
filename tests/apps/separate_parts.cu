// A kernel that calls a function and reads a constant of another file: the driver links the two
// when the program starts.
#include "check.h"

extern __device__ int Twice(int value);
extern __constant__ int kOffset;

__global__ void Fill(int* out) { out[threadIdx.x] = Twice(threadIdx.x) + kOffset; }

int main() {
  constexpr int kCount = 256;
  int *device = nullptr, host[kCount];
  const int offset = 1000;
  CHECK(cudaMalloc(&device, sizeof host));
  CHECK(cudaMemcpyToSymbol(kOffset, &offset, sizeof offset));
  Fill<<<1, kCount>>>(device);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(host, device, sizeof host, cudaMemcpyDeviceToHost));
  for (int i = 0; i < kCount; ++i) EXPECT(host[i] == 2 * i + 1000, "element %d is %d", i, host[i]);
  CHECK(cudaFree(device));
  return Pass("separate_parts");
}
