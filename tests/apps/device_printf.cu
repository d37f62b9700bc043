// Text printed by kernels reaches the program's stdout before the synchronize returns, in order
// with the program's own. The runner compares all of it with device_printf.expected.
#include "check.h"

__global__ void Greet(int round) {
  printf("device: round %d of %s\n", round, "three");
  printf("device: %5.2f|%-6d|%06d|%x|%c|%%|%lld|%llu\n", 3.14159, 42, -42, 0xbeef, 'z',
         -1234567890123LL, 18446744073709551615ULL);
}

__global__ void Lanes() {
  for (int lane = 0; lane < 4; ++lane) {
    if (threadIdx.x == lane) printf("device: lane %d\n", lane);
    __syncthreads();
  }
}

__global__ void Nothing() { printf("device: a line without any argument\n"); }

int main() {
  printf("host: before\n");
  for (int round = 1; round <= 3; ++round) {
    Greet<<<1, 1>>>(round);
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    printf("host: after round %d\n", round);
  }
  cudaStream_t stream;
  CHECK(cudaStreamCreate(&stream));
  Lanes<<<1, 4, 0, stream>>>();
  CHECK(cudaStreamSynchronize(stream));
  printf("host: after the lanes\n");
  Nothing<<<2, 1, 0, stream>>>();
  CHECK(cudaDeviceSynchronize());
  return Pass("device_printf");
}
