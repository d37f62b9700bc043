// A kernel that touches another device's memory without peer access faults, and the fault stays
// with both devices, as it does natively.
#include "check.h"

__global__ void Write(int* address) { *address = 1; }

static void Expect700(cudaError_t code, const char* call) {
  EXPECT(code == cudaErrorIllegalAddress, "%s gave %d (%s)", call, code, cudaGetErrorString(code));
}

int main() {
  int *own, *theirs;
  CHECK(cudaSetDevice(1));
  CHECK(cudaMalloc(&theirs, sizeof(int)));
  CHECK(cudaSetDevice(0));
  CHECK(cudaMalloc(&own, sizeof(int)));
  int can = 0;
  CHECK(cudaDeviceCanAccessPeer(&can, 0, 1));
  if (can != 0) {
    CHECK(cudaDeviceEnablePeerAccess(1, 0));
    Write<<<1, 1>>>(theirs);
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaDeviceDisablePeerAccess(1));
  }
  Write<<<1, 1>>>(own);
  CHECK(cudaDeviceSynchronize());
  Write<<<1, 1>>>(theirs);
  Expect700(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  Expect700(cudaFree(own), "cudaFree");
  cudaSetDevice(1);  // a driver may already say 700 here
  cudaGetLastError();
  Expect700(cudaDeviceSynchronize(), "the other device's cudaDeviceSynchronize");
  int* more = nullptr;
  Expect700(cudaMalloc(&more, 1 << 20), "the other device's cudaMalloc");
  return Pass("peer_fault");
}
