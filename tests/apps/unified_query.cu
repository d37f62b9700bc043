// A query of finished work says so even if it is asked only once, well after the end; a query of
// failed work says the failure.
#include <chrono>
#include <thread>

#include "check.h"

__global__ void Write(int* address, int value) { *address = value; }

int main() {
  int* memory;
  CHECK(cudaMalloc(&memory, sizeof(int)));
  cudaStream_t first, second;
  cudaEvent_t event, unrecorded;
  CHECK(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking));
  CHECK(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
  CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  CHECK(cudaEventCreate(&unrecorded));
  CHECK(cudaEventQuery(unrecorded));
  CHECK(cudaStreamQuery(first));

  Write<<<1, 1, 0, first>>>(memory, 42);
  CHECK(cudaEventRecord(event, first));
  std::this_thread::sleep_for(std::chrono::seconds(1));
  CHECK(cudaEventQuery(event));

  Write<<<1, 1, 0, second>>>(memory, 43);
  std::this_thread::sleep_for(std::chrono::seconds(1));
  CHECK(cudaStreamQuery(second));

  Write<<<1, 1, 0, second>>>(reinterpret_cast<int*>(0x7000), 1);
  // It may have failed already.
  cudaError_t state = cudaEventRecord(event, second);
  EXPECT(state == cudaSuccess || state == cudaErrorIllegalAddress, "the record says %d", state);
  std::this_thread::sleep_for(std::chrono::seconds(1));
  state = cudaEventQuery(event);
  EXPECT(state == cudaErrorIllegalAddress, "the event of failed work says %d", state);
  state = cudaStreamQuery(second);
  EXPECT(state == cudaErrorIllegalAddress, "the stream of failed work says %d", state);
  return Pass("unified_query");
}
