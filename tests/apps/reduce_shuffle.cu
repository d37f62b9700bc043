// Sums and maxima by warp shuffles, votes and one value per warp in shared memory.
#include <climits>
#include <vector>

#include "check.h"

constexpr int kThreads = 256;

__device__ int WarpSum(int value) {
  for (int offset = 16; offset > 0; offset /= 2) {
    value += __shfl_down_sync(0xffffffffu, value, offset);
  }
  return value;
}

__global__ void Reduce(const int* input, int count, int* sum, int* maximum, int* odd) {
  __shared__ int warp_sums[kThreads / 32];
  int value = 0, largest = INT_MIN, odd_count = 0;
  for (int i = blockIdx.x * kThreads + threadIdx.x; i < count; i += gridDim.x * kThreads) {
    value += input[i];
    largest = max(largest, input[i]);
    odd_count += input[i] & 1;
  }
  for (int mask = 16; mask > 0; mask /= 2) {
    largest = max(largest, __shfl_xor_sync(0xffffffffu, largest, mask));
  }
  value = WarpSum(value);
  odd_count = WarpSum(odd_count);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  if (lane == 0) {
    warp_sums[warp] = value;
    atomicMax(maximum, largest);
    atomicAdd(odd, odd_count);
  }
  __syncthreads();
  if (warp == 0) {
    value = WarpSum(lane < kThreads / 32 ? warp_sums[lane] : 0);
    if (lane == 0) atomicAdd(sum, value);
  }
}

__global__ void Ballot(const int* input, unsigned* masks) {
  const unsigned mask = __ballot_sync(0xffffffffu, input[threadIdx.x] > 0);
  const int all = __all_sync(0xffffffffu, mask != 0), any = __any_sync(0xffffffffu, mask == 1);
  if (threadIdx.x % 32 == 0) masks[threadIdx.x / 32] = all && !any ? mask : 0;
}

int main() {
  const int count = 100003;
  std::vector<int> input(count);
  int sum = 0, maximum = INT_MIN, odd = 0;
  for (int i = 0; i < count; ++i) {
    input[i] = (i * 7919) % 2003 - 1000;
    sum += input[i];
    maximum = input[i] > maximum ? input[i] : maximum;
    odd += input[i] & 1;
  }
  int *device_input, *device_results;
  unsigned* device_masks;
  CHECK(cudaMalloc(&device_input, count * sizeof(int)));
  CHECK(cudaMalloc(&device_results, 3 * sizeof(int)));
  CHECK(cudaMalloc(&device_masks, 2 * sizeof(unsigned)));
  CHECK(cudaMemcpy(device_input, input.data(), count * sizeof(int), cudaMemcpyHostToDevice));
  int results[3] = {0, INT_MIN, 0};
  CHECK(cudaMemcpy(device_results, results, sizeof results, cudaMemcpyHostToDevice));
  Reduce<<<20, kThreads>>>(device_input, count, device_results, device_results + 1,
                           device_results + 2);
  CHECK(cudaGetLastError());
  Ballot<<<1, 64>>>(device_input, device_masks);
  CHECK(cudaGetLastError());
  unsigned masks[2];
  CHECK(cudaMemcpy(results, device_results, sizeof results, cudaMemcpyDeviceToHost));
  CHECK(cudaMemcpy(masks, device_masks, sizeof masks, cudaMemcpyDeviceToHost));
  EXPECT(results[0] == sum, "sum %d, not %d", results[0], sum);
  EXPECT(results[1] == maximum, "maximum %d, not %d", results[1], maximum);
  EXPECT(results[2] == odd, "odd numbers %d, not %d", results[2], odd);
  for (int warp = 0; warp < 2; ++warp) {
    unsigned expected = 0;
    for (int lane = 0; lane < 32; ++lane) expected |= unsigned{input[warp * 32 + lane] > 0} << lane;
    EXPECT(masks[warp] == expected, "ballot of warp %d is %08x, not %08x", warp, masks[warp],
           expected);
  }
  CHECK(cudaFree(device_input));
  CHECK(cudaFree(device_results));
  CHECK(cudaFree(device_masks));
  return Pass("reduce_shuffle");
}
