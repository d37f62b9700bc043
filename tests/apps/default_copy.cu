// cudaMemcpyDefault tells the direction from the pointers alone: device memory, module variables,
// pinned, registered and pageable memory, the stack, and constants of the program.
#include <cstring>
#include <vector>

#include "check.h"

constexpr int kCount = 1000;
constexpr size_t kBytes = kCount * sizeof(int);

__device__ int variable[kCount];
static int program_data[kCount];

static void RoundTrip(int* device, int* host, const char* what, int seed) {
  std::vector<int> expected(kCount), result(kCount, -1);
  for (int i = 0; i < kCount; ++i) host[i] = expected[i] = i * seed;
  CHECK(cudaMemcpy(device, host, kBytes, cudaMemcpyDefault));
  std::memset(host, 0, kBytes);
  CHECK(cudaMemcpy(host, device, kBytes, cudaMemcpyDefault));
  EXPECT(std::memcmp(host, expected.data(), kBytes) == 0, "%s memory came back changed", what);
  CHECK(cudaMemcpy(result.data(), host, kBytes, cudaMemcpyDefault));
  EXPECT(result == expected, "the host copy of %s memory is wrong", what);
}

static cudaMemoryType TypeOf(const void* pointer) {
  cudaPointerAttributes attributes;
  CHECK(cudaPointerGetAttributes(&attributes, pointer));
  return attributes.type;
}

int main() {
  int *device, *other, *pinned;
  void* symbol;
  CHECK(cudaMalloc(&device, kBytes));
  CHECK(cudaMalloc(&other, kBytes));
  CHECK(cudaMallocHost(&pinned, kBytes));
  CHECK(cudaGetSymbolAddress(&symbol, variable));
  std::vector<int> heap(kCount), large(4 << 20, 0), registered(kCount);
  int stack[kCount];
  CHECK(cudaHostRegister(registered.data(), kBytes, cudaHostRegisterDefault));
  int seed = 1;
  for (int* target : {device, static_cast<int*>(symbol)}) {
    RoundTrip(target, heap.data(), "heap", ++seed);
    RoundTrip(target, large.data(), "mapped", ++seed);
    RoundTrip(target, stack, "stack", ++seed);
    RoundTrip(target, program_data, "program", ++seed);
    RoundTrip(target, pinned, "pinned", ++seed);
    RoundTrip(target, registered.data(), "registered", ++seed);
  }
  // Between devices' memories, from the middle of one into the middle of the other.
  CHECK(cudaMemset(other, 0, kBytes));
  CHECK(cudaMemcpy(other + 10, device + 20, 40, cudaMemcpyDefault));
  CHECK(cudaMemcpy(heap.data(), other, kBytes, cudaMemcpyDefault));
  for (int i = 0; i < kCount; ++i) {
    // The last round trip through this memory had seed 7.
    const int expected = i >= 10 && i < 20 ? (i + 10) * 7 : 0;
    EXPECT(heap[i] == expected, "element %d is %d, not %d", i, heap[i], expected);
  }
  EXPECT(TypeOf(device + 5) == cudaMemoryTypeDevice, "device memory: %d", TypeOf(device + 5));
  EXPECT(TypeOf(symbol) == cudaMemoryTypeDevice, "a variable: %d", TypeOf(symbol));
  EXPECT(TypeOf(pinned + 5) == cudaMemoryTypeHost, "pinned memory: %d", TypeOf(pinned + 5));
  EXPECT(TypeOf(registered.data()) == cudaMemoryTypeHost, "registered memory: %d",
         TypeOf(registered.data()));
  EXPECT(TypeOf(heap.data()) == cudaMemoryTypeUnregistered, "heap: %d", TypeOf(heap.data()));
  CHECK(cudaHostUnregister(registered.data()));
  return Pass("default_copy");
}
