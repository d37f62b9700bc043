// Each thread has a per-thread default stream of its own: thread A's kernel spins until a kernel
// on thread B's default stream writes.
#include <atomic>
#include <thread>

#include "check.h"

__global__ void SpinUntil(volatile int* flag, int value, int* seen) {
  while (*flag != value) {
  }
  *seen = value;
}

__global__ void Write(volatile int* flag, int value) { *flag = value; }

static void HandOver(int* memory, int value, cudaStream_t default_stream) {
  std::atomic<bool> spinning{false};
  std::thread a([&] {
    SpinUntil<<<1, 1, 0, default_stream>>>(memory, value, memory + 1);
    CHECK(cudaGetLastError());
    spinning = true;
    CHECK(cudaStreamSynchronize(default_stream));
  });
  std::thread b([&] {
    while (!spinning) std::this_thread::yield();
    Write<<<1, 1, 0, default_stream>>>(memory, value);
    CHECK(cudaGetLastError());
    CHECK(cudaStreamSynchronize(default_stream));
  });
  a.join();
  b.join();
  int seen[2] = {0, 0};
  CHECK(cudaMemcpy(seen, memory, sizeof seen, cudaMemcpyDeviceToHost));
  EXPECT(seen[0] == value && seen[1] == value, "flag %d, seen %d, not %d", seen[0], seen[1], value);
}

int main() {
  int* memory;
  CHECK(cudaMalloc(&memory, 2 * sizeof(int)));
  CHECK(cudaMemset(memory, 0, 2 * sizeof(int)));
  // Both kernels run once first, so that neither has to be loaded while the other spins.
  Write<<<1, 1>>>(memory, 1);
  SpinUntil<<<1, 1>>>(memory, 1, memory + 1);
  CHECK(cudaDeviceSynchronize());
  for (int value = 2; value < 12; ++value) HandOver(memory, value, cudaStreamPerThread);
#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM
  for (int value = 12; value < 22; ++value) HandOver(memory, value, nullptr);
#endif
  CHECK(cudaFree(memory));
  return Pass("default_stream_per_thread");
}
