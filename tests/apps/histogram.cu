// Histograms by atomics in shared and in global memory, and the other atomic operations.
#include <cstdint>
#include <vector>

#include "check.h"

constexpr int kBins = 64;

__global__ void Histogram(const uint8_t* input, int count, unsigned* bins) {
  __shared__ unsigned block_bins[kBins];
  if (threadIdx.x < kBins) block_bins[threadIdx.x] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
    atomicAdd(&block_bins[input[i] % kBins], 1u);
  }
  __syncthreads();
  if (threadIdx.x < kBins) atomicAdd(&bins[threadIdx.x], block_bins[threadIdx.x]);
}

struct Atomics {
  int smallest, difference;
  unsigned bits, parity, wrapped;
  unsigned long long big, largest;
  float real;
  int last_exchanged, by_compare;
};

__global__ void AtomicKinds(Atomics* result) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  atomicMin(&result->smallest, i - 100);
  atomicSub(&result->difference, 2);
  atomicOr(&result->bits, 1u << (i % 32));
  atomicXor(&result->parity, static_cast<unsigned>(i));
  atomicInc(&result->wrapped, 99u);
  atomicAdd(&result->big, 1ull << 33);
  atomicMax(&result->largest, (1ull << 40) + i);
  atomicAdd(&result->real, 0.5f);
  atomicExch(&result->last_exchanged, 7);
  int seen = result->by_compare, assumed;
  do {
    assumed = seen;
    seen = atomicCAS(&result->by_compare, assumed, assumed + 3);
  } while (seen != assumed);
}

int main() {
  const int count = 120000, threads = 512;
  std::vector<uint8_t> input(count);
  std::vector<unsigned> expected(kBins), bins(kBins);
  uint32_t state = 12345;
  for (int i = 0; i < count; ++i) {
    state = state * 1664525u + 1013904223u;
    input[i] = static_cast<uint8_t>(state >> 24);
    ++expected[input[i] % kBins];
  }
  uint8_t* device_input;
  unsigned* device_bins;
  Atomics* device_atomics;
  CHECK(cudaMalloc(&device_input, count));
  CHECK(cudaMalloc(&device_bins, kBins * sizeof(unsigned)));
  CHECK(cudaMalloc(&device_atomics, sizeof(Atomics)));
  CHECK(cudaMemcpy(device_input, input.data(), count, cudaMemcpyHostToDevice));
  CHECK(cudaMemset(device_bins, 0, kBins * sizeof(unsigned)));
  CHECK(cudaMemset(device_atomics, 0, sizeof(Atomics)));
  Histogram<<<12, 128>>>(device_input, count, device_bins);
  CHECK(cudaGetLastError());
  AtomicKinds<<<threads / 64, 64>>>(device_atomics);
  CHECK(cudaGetLastError());
  Atomics atomics;
  CHECK(cudaMemcpy(bins.data(), device_bins, kBins * sizeof(unsigned), cudaMemcpyDeviceToHost));
  CHECK(cudaMemcpy(&atomics, device_atomics, sizeof atomics, cudaMemcpyDeviceToHost));
  for (int bin = 0; bin < kBins; ++bin) {
    EXPECT(bins[bin] == expected[bin], "bin %d holds %u, not %u", bin, bins[bin], expected[bin]);
  }
  EXPECT(atomics.smallest == -100, "min %d", atomics.smallest);
  EXPECT(atomics.difference == -2 * threads, "sub %d", atomics.difference);
  EXPECT(atomics.bits == 0xffffffffu, "or %08x", atomics.bits);
  EXPECT(atomics.parity == 0, "xor %08x", atomics.parity);
  EXPECT(atomics.wrapped == threads % 100, "inc %u", atomics.wrapped);
  EXPECT(atomics.big == threads * (1ull << 33), "64-bit add %llu", atomics.big);
  EXPECT(atomics.largest == (1ull << 40) + threads - 1, "64-bit max %llu", atomics.largest);
  EXPECT(atomics.real == threads * 0.5f, "float add %g", atomics.real);
  EXPECT(atomics.last_exchanged == 7, "exchange %d", atomics.last_exchanged);
  EXPECT(atomics.by_compare == threads * 3, "compare and swap %d", atomics.by_compare);
  CHECK(cudaFree(device_input));
  CHECK(cudaFree(device_bins));
  CHECK(cudaFree(device_atomics));
  return Pass("histogram");
}
