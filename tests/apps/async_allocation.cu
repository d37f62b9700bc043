// Stream-ordered allocation: memory is used and freed in stream order, reused, handed to another
// stream by an event, and taken from a pool of the program's own.
#include <vector>

#include "check.h"

constexpr int kCount = 4096, kRounds = 40;

__global__ void Fill(int* values, int value) {
  values[blockIdx.x * blockDim.x + threadIdx.x] = value;
}

__global__ void Accumulate(const int* values, int* sums) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  sums[i] += values[i];
}

static void ExpectAll(const int* device, int expected, cudaStream_t stream) {
  std::vector<int> host(kCount);
  CHECK(cudaMemcpyAsync(host.data(), device, kCount * sizeof(int), cudaMemcpyDeviceToHost, stream));
  CHECK(cudaStreamSynchronize(stream));
  for (int i = 0; i < kCount; ++i) {
    EXPECT(host[i] == expected, "element %d is %d, not %d", i, host[i], expected);
  }
}

static void UseOwnPool(cudaStream_t stream) {
  cudaMemPoolProps properties = {};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location.type = cudaMemLocationTypeDevice;
  properties.location.id = 0;
  cudaMemPool_t pool;
  CHECK(cudaMemPoolCreate(&pool, &properties));
  int* values;
  CHECK(cudaMallocFromPoolAsync(reinterpret_cast<void**>(&values), kCount * sizeof(int), pool,
                                stream));
  Fill<<<kCount / 256, 256, 0, stream>>>(values, -3);
  ExpectAll(values, -3, stream);
  CHECK(cudaFreeAsync(values, stream));
  CHECK(cudaStreamSynchronize(stream));
  CHECK(cudaMemPoolDestroy(pool));
}

static unsigned long long Used(cudaMemPool_t pool) {
  unsigned long long used = 0;
  CHECK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used));
  return used;
}

// A pool's memory may be freed as any other; what is allocated there next is not the pool's.
static void FreeWithoutAStream(cudaStream_t stream) {
  cudaMemPool_t pool;
  CHECK(cudaDeviceGetDefaultMemPool(&pool, 0));
  const unsigned long long before = Used(pool);
  int* values[2];
  for (int*& value : values) {
    CHECK(cudaMallocAsync(&value, kCount * sizeof(int), stream));
    Fill<<<kCount / 256, 256, 0, stream>>>(value, 8);
  }
  EXPECT(Used(pool) >= before + 2 * kCount * sizeof(int), "%llu bytes are used", Used(pool));
  for (int* value : values) CHECK(cudaFree(value));
  // NVIDIA's driver counts a part of it a while longer.
  EXPECT_OF_MISTAKE(Used(pool) == before, "%llu bytes are used after all was freed", Used(pool));
  EXPECT_OF_MISTAKE(cudaFree(values[0]) != cudaSuccess, "freed twice");
  EXPECT_OF_MISTAKE(cudaGetLastError() != cudaSuccess, "no error stayed");
  for (int*& value : values) {
    CHECK(cudaMalloc(&value, kCount * sizeof(int)));
    CHECK(cudaFree(value));
  }
  EXPECT_OF_MISTAKE(Used(pool) == before, "memory that is not the pool's counts: %llu", Used(pool));
}

// A graph that does not free what it allocates leaves that to the program.
static void FreeOfAGraph(cudaStream_t stream) {
  int* values = nullptr;
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  CHECK(cudaMallocAsync(&values, kCount * sizeof(int), stream));
  Fill<<<kCount / 256, 256, 0, stream>>>(values, 21);
  CHECK(cudaStreamEndCapture(stream, &graph));
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  for (int round = 0; round < 2; ++round) {
    CHECK(cudaGraphLaunch(exec, stream));
    ExpectAll(values, 21, stream);
    CHECK(cudaFree(values));
  }
  CHECK(cudaGraphExecDestroy(exec));
  CHECK(cudaGraphDestroy(graph));
}

int main() {
  int supported = 0;
  CHECK(cudaDeviceGetAttribute(&supported, cudaDevAttrMemoryPoolsSupported, 0));
  EXPECT(supported == 1, "the device has no memory pools");
  cudaStream_t stream, other;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  CHECK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
  cudaEvent_t filled, used;
  CHECK(cudaEventCreateWithFlags(&filled, cudaEventDisableTiming));
  CHECK(cudaEventCreateWithFlags(&used, cudaEventDisableTiming));
  int* sums;
  CHECK(cudaMallocAsync(&sums, kCount * sizeof(int), stream));
  CHECK(cudaMemsetAsync(sums, 0, kCount * sizeof(int), stream));
  int expected = 0;
  for (int round = 1; round <= kRounds; ++round) {
    int* values;
    CHECK(cudaMallocAsync(&values, kCount * sizeof(int), stream));
    Fill<<<kCount / 256, 256, 0, stream>>>(values, round);
    CHECK(cudaEventRecord(filled, stream));
    CHECK(cudaStreamWaitEvent(other, filled, 0));
    Accumulate<<<kCount / 256, 256, 0, other>>>(values, sums);
    CHECK(cudaFreeAsync(values, other));
    CHECK(cudaEventRecord(used, other));
    CHECK(cudaStreamWaitEvent(stream, used, 0));
    expected += round;
  }
  ExpectAll(sums, expected, stream);
  CHECK(cudaFreeAsync(sums, stream));
  CHECK(cudaStreamSynchronize(stream));

  cudaMemPool_t pool;
  CHECK(cudaDeviceGetDefaultMemPool(&pool, 0));
  unsigned long long reserved = 0, threshold = ~0ull;
  CHECK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
  CHECK(cudaMemPoolTrimTo(pool, 0));
  CHECK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemCurrent, &reserved));
  EXPECT(reserved == 0, "a trimmed pool still holds %llu bytes", reserved);
  UseOwnPool(stream);
  FreeWithoutAStream(stream);
  FreeOfAGraph(stream);
  return Pass("async_allocation");
}
