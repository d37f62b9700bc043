// Most of the device's memory is allocated, used, freed and allocated again, several times: an
// allocation waits for pending frees. Asking for more than there is fails at once, harmlessly.
#include "check.h"

__global__ void Touch(unsigned char* memory, size_t bytes, size_t stride, unsigned char value) {
  const size_t i = (blockIdx.x * size_t{blockDim.x} + threadIdx.x) * stride;
  if (i < bytes) memory[i] = value;
}

int main() {
  size_t free_bytes = 0, total_bytes = 0;
  CHECK(cudaMemGetInfo(&free_bytes, &total_bytes));
  const size_t most = free_bytes / 10 * 8;
  for (int round = 1; round <= 4; ++round) {
    unsigned char* memory = nullptr;
    CHECK(cudaMalloc(&memory, most));
    Touch<<<8, 128>>>(memory, most, most / 1024, static_cast<unsigned char>(round));
    CHECK(cudaGetLastError());
    if (round % 2 == 0) {
      unsigned char last = 0;
      const size_t at = 1023 * (most / 1024);
      CHECK(cudaMemcpy(&last, memory + at, 1, cudaMemcpyDeviceToHost));
      EXPECT(last == round, "the last byte touched is %d", last);
    }
    CHECK(cudaFree(memory));
  }
  void* too_much = nullptr;
  cudaError_t refused = cudaMalloc(&too_much, total_bytes + (size_t{64} << 20));
  EXPECT(refused == cudaErrorMemoryAllocation, "more than all gave %d", refused);
  (void)cudaGetLastError();

  void *first = nullptr, *second = nullptr;
  CHECK(cudaMalloc(&first, most));
  refused = cudaMalloc(&second, most);
  EXPECT(refused == cudaErrorMemoryAllocation, "a second time most of it gave %d", refused);
  (void)cudaGetLastError();
  size_t free_now = 0;
  CHECK(cudaMemGetInfo(&free_now, &total_bytes));
  EXPECT(free_now + most <= free_bytes + (64u << 20), "%zu bytes are free beside %zu of %zu",
         free_now, most, free_bytes);
  CHECK(cudaFree(first));
  CHECK(cudaMalloc(&second, most));
  CHECK(cudaFree(second));
  return Pass("oom_reuse");
}
