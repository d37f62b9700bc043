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
// `shrinks`: every second copy by this much shorter.
static void TestTwoStreams(size_t bytes, size_t shrinks, int rounds) {
  unsigned char *pinned, *source;
  cudaStream_t streams[2];
  cudaEvent_t event;
  CHECK(cudaMallocHost(&pinned, bytes));
  CHECK(cudaMalloc(&source, bytes));
  CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  for (cudaStream_t& stream : streams) {
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  }
  for (int round = 1; round <= rounds; ++round) {
    cudaStream_t stream = streams[round % 2];
    const size_t size = round % 2 == 0 ? bytes - shrinks : bytes;
    CHECK(cudaStreamWaitEvent(stream, event, 0));
    CHECK(cudaMemsetAsync(source, round % 251, bytes, stream));
    CHECK(cudaMemcpyAsync(pinned, source, size, cudaMemcpyDeviceToHost, stream));
    CHECK(cudaEventRecord(event, stream));
    if (round % 7 != 0) continue;
    CHECK(cudaStreamSynchronize(stream));
    for (size_t i = 0; i < size; i += 1000) {
      EXPECT(pinned[i] == round % 251, "after two streams' copies byte %zu of %zu is %d, not %d", i,
             size, pinned[i], round % 251);
    }
  }
  for (cudaStream_t stream : streams) CHECK(cudaStreamDestroy(stream));
  CHECK(cudaEventDestroy(event));
  CHECK(cudaFree(source));
  CHECK(cudaFreeHost(pinned));
}

// Copies within the program's memory, pinned or not, are complete when the call returns, also those
// that need not wait. `exposed`: kernels may reach it, too.
static void TestPageableInHost(cudaStream_t stream, int* pinned, int* source, bool exposed) {
  std::vector<int> pageable(kCount, 11);
  int* device = nullptr;
  if (exposed) CHECK(cudaHostGetDevicePointer(&device, pinned, 0));
  FillLate<<<kCount / 256, 256, 0, stream>>>(source, 22, 200);
  CHECK(cudaMemcpyAsync(pinned, pageable.data(), kBytes, cudaMemcpyHostToHost, stream));
  EXPECT(pinned[0] == 11 && pinned[kCount - 1] == 11, "pinned memory holds %d and %d", pinned[0],
         pinned[kCount - 1]);
  CHECK(cudaMemcpyAsync(pinned, source, kBytes, cudaMemcpyDeviceToHost, stream));
  CHECK(cudaMemcpyAsync(pageable.data(), pinned, kBytes, cudaMemcpyDefault, stream));
  EXPECT(pageable[0] == 22 && pageable[kCount - 1] == 22, "pageable memory holds %d and %d",
         pageable[0], pageable[kCount - 1]);
}
static void TestPinnedInHost(cudaStream_t stream, int* from, int* to, int* source) {
  for (int i = 0; i < kCount; ++i) from[i] = 33;
  FillLate<<<kCount / 256, 256, 0, stream>>>(source, 0, 200);
  CHECK(cudaMemcpyAsync(to, from, kBytes, cudaMemcpyHostToHost, stream));
  EXPECT(to[0] == 33 && to[kCount - 1] == 33, "the copy holds %d and %d", to[0], to[kCount - 1]);
  for (int i = 0; i < kCount; ++i) from[i] = -1;
  CHECK(cudaStreamSynchronize(stream));
  EXPECT(to[0] == 33 && to[kCount - 1] == 33, "then the copy holds %d and %d", to[0],
         to[kCount - 1]);
}

// A copy that waits has read its pinned source when it returns, whatever the program does with it
// then, also where kernels reach the source and the copy is the device's own.
static void TestExposedSource(int* pinned, int* source, int* target) {
  int* device = nullptr;
  CHECK(cudaHostGetDevicePointer(&device, pinned, 0));
  for (int round = 1; round <= 20; ++round) {
    for (int i = 0; i < kCount; ++i) pinned[i] = round;
    FillLate<<<kCount / 256, 256>>>(source, 0, 200);
    CHECK(cudaMemcpy2D(target, 1024, pinned, 1024, 1024, kBytes / 1024, cudaMemcpyDefault));
    for (int i = 0; i < kCount; ++i) pinned[i] = -1;
    ExpectAll(target, round, "a copy that waits");
  }
}

// With an argument kernels reach the pinned memory, too.
int main(int count, char**) {
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

  int* apart = nullptr;
  CHECK(cudaMallocHost(&apart, kBytes));
  TestPageableInHost(stream, pinned, source, false);
  TestPinnedInHost(stream, pinned, apart, source);
  if (count > 1) {
    TestPageableInHost(stream, pinned, source, true);
    TestPinnedInHost(stream, pinned, apart, source);
    TestExposedSource(pinned, source, target);
  }

  // Memory pinned afterwards follows the same rules.
  std::vector<int> registered(kCount, 5);
  CHECK(cudaHostRegister(registered.data(), kBytes, cudaHostRegisterDefault));
  FillLate<<<kCount / 256, 256, 0, stream>>>(source, 321, 200);
  CHECK(cudaMemcpyAsync(registered.data(), source, kBytes, cudaMemcpyDeviceToHost, stream));
  CHECK(cudaMemcpyAsync(target, registered.data(), kBytes, cudaMemcpyHostToDevice, stream));
  CHECK(cudaStreamSynchronize(stream));
  ExpectAll(target, 321, "registered memory");
  TestPinnedInHost(stream, registered.data(), pinned, source);
  TestPinnedInHost(stream, apart, registered.data(), source);
  CHECK(cudaHostUnregister(registered.data()));
  CHECK(cudaFreeHost(apart));
  CHECK(cudaFreeHost(pinned));
  CHECK(cudaFree(source));
  CHECK(cudaFree(target));
  TestTwoStreams(4096, 0, 600);
  // Those of more than 1 MiB may take other ways than the shorter ones before them.
  std::thread other(TestTwoStreams, 2800 << 10, 1900 << 10, 140);
  TestTwoStreams(2700 << 10, 2000 << 10, 140);
  other.join();
  return Pass("pinned_order");
}
