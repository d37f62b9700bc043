// What a driver refuses at once is refused at once with its own code, and the program goes on.
#include "check.h"

__global__ void AddOne(int* value) { *value += 1; }

__global__ void __launch_bounds__(64) Bounded(int* value) { *value += 1; }

// Takes the pending error, which must be one of the two codes.
static void Refused(const char* what, cudaError_t code, cudaError_t also) {
  const cudaError_t pending = cudaGetLastError();
  EXPECT(pending == code || pending == also, "%s gave %d (%s)", what, pending,
         cudaGetErrorString(pending));
  EXPECT(cudaGetLastError() == cudaSuccess, "the error of %s stayed", what);
}

static void RefusedCall(const char* what, cudaError_t result, cudaError_t expected) {
  EXPECT(result == expected, "%s gave %d (%s)", what, result, cudaGetErrorString(result));
  (void)cudaGetLastError();
}

int main() {
  int* value;
  CHECK(cudaMalloc(&value, sizeof(int)));
  CHECK(cudaMemset(value, 0, sizeof(int)));
  int right_launches = 0;
  const auto still_works = [&] {
    AddOne<<<1, 1>>>(value);
    CHECK(cudaGetLastError());
    ++right_launches;
    int seen = 0;
    CHECK(cudaMemcpy(&seen, value, sizeof seen, cudaMemcpyDeviceToHost));
    EXPECT(seen == right_launches, "%d kernels ran, not %d", seen, right_launches);
  };
  still_works();
  AddOne<<<1, 2048>>>(value);
  Refused("2,048 threads", cudaErrorInvalidConfiguration, cudaErrorInvalidValue);
  still_works();
  AddOne<<<0, 32>>>(value);
  Refused("an empty grid", cudaErrorInvalidConfiguration, cudaErrorInvalidValue);
  AddOne<<<dim3(1, 70000), 32>>>(value);
  Refused("70,000 blocks in y", cudaErrorInvalidConfiguration, cudaErrorInvalidValue);
  AddOne<<<1, dim3(1, 1, 128)>>>(value);
  Refused("128 threads in z", cudaErrorInvalidConfiguration, cudaErrorInvalidValue);
  AddOne<<<1, 1, 1 << 20>>>(value);
  Refused("1 MiB of shared memory", cudaErrorInvalidValue, cudaErrorLaunchOutOfResources);
  still_works();
  Bounded<<<1, 256>>>(value);
  Refused("more threads than the launch bounds", cudaErrorInvalidValue,
          cudaErrorLaunchOutOfResources);
  still_works();
  void* memory = nullptr;
  RefusedCall("an allocation of 2^60 bytes", cudaMalloc(&memory, size_t{1} << 60),
              cudaErrorMemoryAllocation);
  RefusedCall("device 99", cudaSetDevice(99), cudaErrorInvalidDevice);
  RefusedCall("freeing a host pointer", cudaFree(&right_launches), cudaErrorInvalidValue);
  RefusedCall("freeing the middle of memory", cudaFree(reinterpret_cast<char*>(value) + 1),
              cudaErrorInvalidValue);
  RefusedCall("an attribute of shared memory that is too large",
              cudaFuncSetAttribute(AddOne, cudaFuncAttributeMaxDynamicSharedMemorySize, 1 << 20),
              cudaErrorInvalidValue);
  RefusedCall("a copy of unknown direction",
              cudaMemcpy(value, &right_launches, 4, static_cast<cudaMemcpyKind>(9)),
              cudaErrorInvalidMemcpyDirection);
  cudaEvent_t event;
  float milliseconds = 0;
  CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  CHECK(cudaEventRecord(event));
  RefusedCall("the time of an event without timing",
              cudaEventElapsedTime(&milliseconds, event, event), cudaErrorInvalidResourceHandle);
  still_works();
  return Pass("error_codes");
}
