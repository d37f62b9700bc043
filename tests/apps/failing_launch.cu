// A kernel writes where nothing is. Prints what the launch itself gave and what the next
// synchronize gave: with CUDA_LAUNCH_BLOCKING=1 the launch tells.
#include "check.h"

__global__ void Write(int* address) { *address = 1; }

int main() {
  CHECK(cudaFree(nullptr));
  Write<<<1, 1>>>(reinterpret_cast<int*>(0x10));
  std::printf("launch %s\n", cudaGetErrorName(cudaGetLastError()));
  std::printf("synchronize %s\n", cudaGetErrorName(cudaDeviceSynchronize()));
  return Pass("failing_launch");
}
