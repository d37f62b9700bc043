// Inclusive prefix sums: each block scans its part in dynamic shared memory, a second kernel scans
// the blocks' totals and a third adds them.
#include <vector>

#include "check.h"

constexpr int kThreads = 256;

__global__ void ScanBlocks(const int* input, int* output, int* totals, int count) {
  extern __shared__ int values[];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  values[threadIdx.x] = i < count ? input[i] : 0;
  __syncthreads();
  for (int distance = 1; distance < blockDim.x; distance *= 2) {
    const int addend = threadIdx.x >= distance ? values[threadIdx.x - distance] : 0;
    __syncthreads();
    values[threadIdx.x] += addend;
    __syncthreads();
  }
  if (i < count) output[i] = values[threadIdx.x];
  if (totals != nullptr && threadIdx.x == blockDim.x - 1) totals[blockIdx.x] = values[threadIdx.x];
}

__global__ void AddTotals(int* output, const int* totals, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count && blockIdx.x > 0) output[i] += totals[blockIdx.x - 1];
}

int main() {
  const int count = 50021, blocks = (count + kThreads - 1) / kThreads;
  std::vector<int> input(count), output(count);
  for (int i = 0; i < count; ++i) input[i] = (i * 31) % 101 - 40;
  int *device_input, *device_output, *device_totals, *device_scanned;
  CHECK(cudaMalloc(&device_input, count * sizeof(int)));
  CHECK(cudaMalloc(&device_output, count * sizeof(int)));
  CHECK(cudaMalloc(&device_totals, blocks * sizeof(int)));
  CHECK(cudaMalloc(&device_scanned, blocks * sizeof(int)));
  CHECK(cudaMemcpy(device_input, input.data(), count * sizeof(int), cudaMemcpyHostToDevice));
  const size_t shared_bytes = kThreads * sizeof(int);
  ScanBlocks<<<blocks, kThreads, shared_bytes>>>(device_input, device_output, device_totals, count);
  CHECK(cudaGetLastError());
  ScanBlocks<<<1, kThreads, shared_bytes>>>(device_totals, device_scanned, nullptr, blocks);
  CHECK(cudaGetLastError());
  AddTotals<<<blocks, kThreads>>>(device_output, device_scanned, count);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(output.data(), device_output, count * sizeof(int), cudaMemcpyDeviceToHost));
  int sum = 0;
  for (int i = 0; i < count; ++i) {
    sum += input[i];
    EXPECT(output[i] == sum, "prefix %d is %d, not %d", i, output[i], sum);
  }
  static_assert(50021 / kThreads + 1 <= kThreads, "the totals must fit into one block");
  CHECK(cudaFree(device_input));
  CHECK(cudaFree(device_output));
  CHECK(cudaFree(device_totals));
  CHECK(cudaFree(device_scanned));
  return Pass("scan");
}
