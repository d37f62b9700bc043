// A kernel's wild write is reported as 700 by the synchronize and by every later call; a call after
// the launch that does not wait may see it or not.
#include "check.h"

__global__ void WriteWild(int* address) { *address = 1; }

static void Expect700(cudaError_t code, const char* call) {
  EXPECT(code == cudaErrorIllegalAddress, "%s gave %d (%s)", call, code, cudaGetErrorString(code));
}

int main() {
  int* memory;
  CHECK(cudaMalloc(&memory, sizeof(int)));
  cudaStream_t stream;
  cudaEvent_t event;
  CHECK(cudaStreamCreate(&stream));
  CHECK(cudaEventCreate(&event));
  WriteWild<<<1, 1, 0, stream>>>(memory);
  CHECK(cudaStreamSynchronize(stream));

  WriteWild<<<1, 1, 0, stream>>>(reinterpret_cast<int*>(0x7000));
  cudaError_t recorded = cudaEventRecord(event, stream);
  if (recorded != cudaSuccess) Expect700(recorded, "cudaEventRecord");
  Expect700(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  Expect700(cudaStreamQuery(stream), "cudaStreamQuery");
  Expect700(cudaEventSynchronize(event), "cudaEventSynchronize");
  int value = 0;
  Expect700(cudaMemcpy(&value, memory, sizeof value, cudaMemcpyDeviceToHost), "cudaMemcpy");
  int* more = nullptr;
  Expect700(cudaMalloc(&more, 1 << 20), "cudaMalloc");
  Expect700(cudaFree(memory), "cudaFree");
  WriteWild<<<1, 1>>>(memory);
  Expect700(cudaGetLastError(), "the next launch");
  return Pass("illegal_address");
}
