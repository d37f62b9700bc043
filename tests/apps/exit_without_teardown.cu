// Returns from main with work queued and nothing destroyed; a static object still calls CUDA
// while the program ends. It must end at once and with exit code 0.
#include <thread>

#include "check.h"

__global__ void Spin(int* memory, int turns) {
  unsigned x = threadIdx.x;
  for (int turn = 0; turn < turns; ++turn) x = x * 1664525u + 1013904223u;
  memory[threadIdx.x] = static_cast<int>(x);
}

struct FreesLate {
  int* memory = nullptr;
  ~FreesLate() { (void)cudaFree(memory); }
};

static FreesLate late;

int main() {
  CHECK(cudaMalloc(&late.memory, 1024));
  cudaStream_t stream;
  cudaEvent_t event;
  int* pinned;
  CHECK(cudaStreamCreate(&stream));
  CHECK(cudaEventCreate(&event));
  CHECK(cudaMallocHost(&pinned, 1024));
  std::thread([] {
    int* memory;
    CHECK(cudaMalloc(&memory, 1024));
    Spin<<<1, 32, 0, cudaStreamPerThread>>>(memory, 10);
    CHECK(cudaGetLastError());
  }).join();
  for (int i = 0; i < 50; ++i) Spin<<<1, 32, 0, stream>>>(late.memory, 2000);
  CHECK(cudaMemcpyAsync(pinned, late.memory, 1024, cudaMemcpyDeviceToHost, stream));
  CHECK(cudaEventRecord(event, stream));
  return Pass("exit_without_teardown");
}
