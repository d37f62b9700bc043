// Separately compiled code of one file alone: the driver links it when the program starts, where it
// has only what is written for another architecture. Kernels of lambdas that use variables.
#include "check.h"

template <class Operation>
__global__ void Apply(int* values, int count, Operation operation) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) values[i] = operation(values[i], i);
}

__constant__ int offset = 5;
__device__ int calls;
__device__ int table[100];

int main() {
  constexpr int kCount = 500;
  int *values = nullptr, host[kCount];
  CHECK(cudaMalloc(&values, sizeof host));
  CHECK(cudaMemset(values, 0, sizeof host));
  const int factor = 3;
  Apply<<<4, 128>>>(values, kCount,
                    [factor] __device__(int value, int i) { return value + i * factor + offset; });
  CHECK(cudaGetLastError());
  Apply<<<4, 128>>>(values, kCount, [] __device__(int value, int i) {
    atomicAdd(&calls, 1);
    table[i % 100] = i % 100;
    return -value;
  });
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(host, values, sizeof host, cudaMemcpyDeviceToHost));
  for (int i = 0; i < kCount; ++i) EXPECT(host[i] == -(3 * i + 5), "element %d is %d", i, host[i]);
  int seen = 0, entries[100] = {}, seven = 7;
  CHECK(cudaMemcpyFromSymbol(&seen, calls, sizeof seen));
  EXPECT(seen == kCount, "the variable says %d", seen);
  CHECK(cudaMemcpyFromSymbol(entries, table, sizeof entries));
  for (int i = 0; i < 100; ++i) EXPECT(entries[i] == i, "entry %d is %d", i, entries[i]);
  CHECK(cudaMemcpyToSymbol(offset, &seven, sizeof seven));
  CHECK(cudaMemset(values, 0, sizeof host));
  Apply<<<4, 128>>>(values, kCount,
                    [factor] __device__(int value, int i) { return value + i * factor + offset; });
  CHECK(cudaMemcpy(host, values, sizeof host, cudaMemcpyDeviceToHost));
  EXPECT(host[1] == 10, "with another constant it is %d", host[1]);
  CHECK(cudaFree(values));
  return Pass("one_part");
}
