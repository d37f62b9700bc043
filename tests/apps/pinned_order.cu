// A copy from pinned memory reads it when the stream gets there, not when the call is made:
// after an unfinished copy into the same memory, and after a host function that fills it.
// A copy from pageable memory has taken its bytes when the call returns.
#include <chrono>
#include <thread>
#include <vector>

#include "check.h"

constexpr int kCount = 1 << 16;
constexpr size_t kBytes = kCount * sizeof(int);

__global__ void FillLate(int* values, int value, int turns) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  int x = value;
  for (int turn = 0; turn < turns; ++turn) x = x * 1664525 + 1013904223;
  values[i] = value + (x == 0x7fffffff && turns < 0 ? 1 : 0);
}

static void ExpectAll(const int* device, int expected, const char* what) {
  std::vector<int> host(kCount);
  CHECK(cudaMemcpy(host.data(), device, kBytes, cudaMemcpyDeviceToHost));
  for (int i = 0; i < kCount; ++i) {
    EXPECT(host[i] == expected, "%s: element %d is %d, not %d", what, i, host[i], expected);
  }
}

struct Filler {
  int* memory;
  int value;
};

static void CUDART_CB FillOnHost(void* argument) {
  const Filler* filler = static_cast<Filler*>(argument);
  std::this_thread::sleep_for(std::chrono::milliseconds(10));
  for (int i = 0; i < kCount; ++i) filler->memory[i] = filler->value;
}

// Two streams that wait for each other copy into the same memory: the later copy's bytes stay.
static void TestTwoStreams() {
  constexpr size_t kSmall = 4096;
  unsigned char *pinned, *source;
  cudaStream_t streams[2];
  cudaEvent_t event;
  CHECK(cudaMallocHost(&pinned, kSmall));
  CHECK(cudaMalloc(&source, kSmall));
  CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  for (cudaStream_t& stream : streams) {
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  }
  for (int round = 1; round <= 600; ++round) {
    cudaStream_t stream = streams[round % 2];
    CHECK(cudaStreamWaitEvent(stream, event, 0));
    CHECK(cudaMemsetAsync(source, round % 251, kSmall, stream));
    CHECK(cudaMemcpyAsync(pinned, source, kSmall, cudaMemcpyDeviceToHost, stream));
    CHECK(cudaEventRecord(event, stream));
    if (round % 3 != 0) continue;
    CHECK(cudaStreamSynchronize(stream));
    EXPECT(pinned[0] == round % 251 && pinned[kSmall - 1] == round % 251,
           "after the copies of two streams there is %d, not %d", pinned[0], round % 251);
  }
  for (cudaStream_t stream : streams) CHECK(cudaStreamDestroy(stream));
  CHECK(cudaEventDestroy(event));
  CHECK(cudaFree(source));
  CHECK(cudaFreeHost(pinned));
}

int main() {
  int *pinned, *source, *target;
  CHECK(cudaMallocHost(&pinned, kBytes));
  CHECK(cudaMalloc(&source, kBytes));
  CHECK(cudaMalloc(&target, kBytes));
  cudaStream_t stream;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));

  for (int round = 1; round <= 5; ++round) {
    for (int i = 0; i < kCount; ++i) pinned[i] = -round;
    FillLate<<<kCount / 256, 256, 0, stream>>>(source, round, 200);
    CHECK(cudaMemcpyAsync(pinned, source, kBytes, cudaMemcpyDeviceToHost, stream));
    CHECK(cudaMemcpyAsync(target, pinned, kBytes, cudaMemcpyHostToDevice, stream));
    CHECK(cudaStreamSynchronize(stream));
    ExpectAll(target, round, "down and up again");
    EXPECT(pinned[kCount - 1] == round, "the pinned memory holds %d", pinned[kCount - 1]);

    Filler filler{pinned, round * 100};
    FillLate<<<kCount / 256, 256, 0, stream>>>(source, 0, 200);
    CHECK(cudaLaunchHostFunc(stream, FillOnHost, &filler));
    CHECK(cudaMemcpyAsync(target, pinned, kBytes, cudaMemcpyHostToDevice, stream));
    CHECK(cudaStreamSynchronize(stream));
    ExpectAll(target, round * 100, "filled by a host function");

    std::vector<int> pageable(kCount, round * 7);
    FillLate<<<kCount / 256, 256, 0, stream>>>(source, 0, 200);
    CHECK(cudaMemcpyAsync(target, pageable.data(), kBytes, cudaMemcpyHostToDevice, stream));
    for (int& value : pageable) value = -1;
    CHECK(cudaStreamSynchronize(stream));
    ExpectAll(target, round * 7, "from pageable memory");
  }

  // Memory pinned afterwards follows the same rules.
  std::vector<int> registered(kCount, 5);
  CHECK(cudaHostRegister(registered.data(), kBytes, cudaHostRegisterDefault));
  FillLate<<<kCount / 256, 256, 0, stream>>>(source, 321, 200);
  CHECK(cudaMemcpyAsync(registered.data(), source, kBytes, cudaMemcpyDeviceToHost, stream));
  CHECK(cudaMemcpyAsync(target, registered.data(), kBytes, cudaMemcpyHostToDevice, stream));
  CHECK(cudaStreamSynchronize(stream));
  ExpectAll(target, 321, "registered memory");
  CHECK(cudaHostUnregister(registered.data()));
  CHECK(cudaFreeHost(pinned));
  CHECK(cudaFree(source));
  CHECK(cudaFree(target));
  TestTwoStreams();
  return Pass("pinned_order");
}
