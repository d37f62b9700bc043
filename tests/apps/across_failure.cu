// Two devices, of which the second ends while it works: what does not need it goes on, what waits
// for it fails.
//
//   across_failure alone | waiting
#include <cstring>

#include "check.h"

__global__ void Never(volatile unsigned* flag) {
  while (*flag == 0) {
  }
}

__global__ void Add(unsigned* value) { *value += 1; }

int main(int argc, char** argv) {
  const bool waits = argc > 1 && strcmp(argv[1], "waiting") == 0;
  unsigned *first, *second;
  cudaStream_t stream, beside;
  cudaEvent_t event;
  CHECK(cudaSetDevice(0));
  CHECK(cudaMalloc(&first, sizeof *first));
  CHECK(cudaMemset(first, 0, sizeof *first));
  CHECK(cudaStreamCreateWithFlags(&beside, cudaStreamNonBlocking));
  CHECK(cudaSetDevice(1));
  CHECK(cudaMalloc(&second, sizeof *second));
  CHECK(cudaMemset(second, 0, sizeof *second));
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  CHECK(cudaDeviceSynchronize());
  Never<<<1, 1, 0, stream>>>(second);
  CHECK(cudaEventRecord(event, stream));
  CHECK(cudaSetDevice(0));
  Add<<<1, 1, 0, beside>>>(first);
  if (waits) CHECK(cudaStreamWaitEvent(beside, event, 0));
  Add<<<1, 1, 0, beside>>>(first);
  puts("READY");
  fflush(stdout);
  const cudaError_t other = cudaEventSynchronize(event);
  EXPECT(other == cudaErrorLaunchFailure, "the wait for the device that ended gave %d", other);
  const cudaError_t own = cudaStreamSynchronize(beside);
  if (waits) {
    EXPECT(own == cudaErrorLaunchFailure, "what waited for it gave %d", own);
    puts("PASS across_failure");
    return 0;
  }
  EXPECT(own == cudaSuccess, "what did not need it gave %d", own);
  cudaGetLastError();
  unsigned found = 0;
  Add<<<1, 1>>>(first);
  CHECK(cudaMemcpy(&found, first, sizeof found, cudaMemcpyDeviceToHost));
  EXPECT(found == 3, "%u", found);
  // The other one stays failed.
  CHECK(cudaSetDevice(1));
  const cudaError_t later = cudaDeviceSynchronize();
  EXPECT(later == cudaErrorLaunchFailure, "a later call gave %d", later);
  puts("PASS across_failure");
  return 0;
}
