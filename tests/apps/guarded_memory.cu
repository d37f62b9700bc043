// A program with memory that it gives to no call, at an address that everybody knows. However the
// program ends, it looks whether all of that is as it was: if not it ends with code 9.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <vector>

#include "check.h"

constexpr uint64_t kGuardAddress = 0x100000000000;  // as in tests/hostile/forged_reply_test.py
constexpr size_t kGuardBytes = size_t{64} << 20;
constexpr int kChanged = 9;
constexpr int kCount = 1 << 20;
constexpr size_t kBytes = kCount * sizeof(int);

static uint64_t* const guard = reinterpret_cast<uint64_t*>(kGuardAddress);

static void CheckGuard() {
  for (size_t i = 0; i < kGuardBytes / sizeof(uint64_t); i += 64) {
    if (guard[i] == i * 3) continue;
    std::printf("CHANGED: the program's memory at %p\n", static_cast<void*>(guard + i));
    std::fflush(stdout);
    _exit(kChanged);
  }
}

static void MakeGuard() {
  void* mapped = mmap(guard, kGuardBytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  EXPECT(mapped == guard, "the guard's address is taken");
  for (size_t i = 0; i < kGuardBytes / sizeof(uint64_t); i += 64) guard[i] = i * 3;
  std::atexit(CheckGuard);
}

__global__ void AddToAll(int* values, int amount) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < kCount) values[i] += amount;
}

static void Add(int* values, int amount) {
  AddToAll<<<(kCount + 255) / 256, 256>>>(values, amount);
  CHECK(cudaGetLastError());
}

static void ExpectAll(const int* values, int expected, const char* what) {
  for (int i = 0; i < kCount; ++i) {
    EXPECT(values[i] == expected, "%s: element %d is %d", what, i, values[i]);
  }
}

int main() {
  MakeGuard();
  int *pinned = nullptr, *device = nullptr, *managed = nullptr;
  CHECK(cudaMallocHost(&pinned, kBytes));
  std::memset(pinned, 0, kBytes);
  CHECK(cudaMalloc(&device, kBytes));
  CHECK(cudaMallocManaged(&managed, kBytes));
  std::memset(managed, 0, kBytes);
  CHECK(cudaMemcpyAsync(device, pinned, kBytes, cudaMemcpyHostToDevice));
  Add(device, 5);
  Add(managed, 6);
  CHECK(cudaMemcpyAsync(pinned, device, kBytes, cudaMemcpyDeviceToHost));
  CHECK(cudaDeviceSynchronize());
  ExpectAll(pinned, 5, "pinned");
  ExpectAll(managed, 6, "managed");
  std::vector<int> pageable(kCount);
  CHECK(cudaMemcpy(pageable.data(), device, kBytes, cudaMemcpyDeviceToHost));
  ExpectAll(pageable.data(), 5, "pageable");
  CHECK(cudaFree(managed));
  CHECK(cudaFree(device));
  CHECK(cudaFreeHost(pinned));
  std::printf("PASSED\n");
  return 0;
}
