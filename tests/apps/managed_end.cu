// The ends of managed memory: all of the device's memory can be had, given back and had again; a
// device reset takes it, a fault leaves nobody waiting.
#include <cuda_runtime.h>

#include <cstring>
#include <vector>

#include "check.h"

constexpr size_t kPiece = size_t{32} << 20;

__global__ void Add(int* value, int amount) { *value += amount; }
__global__ void Fault(int* value) { *reinterpret_cast<int*>(16) = *value; }

static std::vector<int*> TakeAll() {
  std::vector<int*> pieces;
  int* piece = nullptr;
  cudaError_t code = cudaSuccess;
  while ((code = cudaMallocManaged(&piece, kPiece)) == cudaSuccess) pieces.push_back(piece);
  EXPECT(code == cudaErrorMemoryAllocation, "the end of memory is %d", code);
  EXPECT(!pieces.empty(), "not even one piece fits");
  return pieces;
}

static void AllAndAgain() {
  // Most of it is taken by others, so that little has to be compared.
  size_t free = 0, total = 0;
  void* others = nullptr;
  CHECK(cudaMemGetInfo(&free, &total));
  EXPECT(free > 4 * kPiece, "only %zu bytes are free", free);
  CHECK(cudaMalloc(&others, free / kPiece * kPiece - 4 * kPiece));
  const std::vector<int*> first = TakeAll();
  EXPECT(first.size() <= 5, "%zu pieces of %zu bytes", first.size(), kPiece);
  *first.front() = 1;
  *first.back() = 2;
  Add<<<1, 1>>>(first.front(), 10);
  Add<<<1, 1>>>(first.back(), 10);
  CHECK(cudaDeviceSynchronize());
  EXPECT(*first.front() == 11 && *first.back() == 12, "%d %d", *first.front(), *first.back());
  for (int* piece : first) CHECK(cudaFree(piece));
  const std::vector<int*> second = TakeAll();
  EXPECT(second.size() == first.size(), "%zu pieces, then %zu", first.size(), second.size());
  for (int* piece : second) {
    EXPECT(*piece == 0, "fresh memory holds %d", *piece);
    CHECK(cudaFree(piece));
  }
  CHECK(cudaFree(others));
}

static void AfterReset() {
  int *managed = nullptr, *pinned = nullptr;
  CHECK(cudaMallocManaged(&managed, 1000));
  CHECK(cudaHostAlloc(&pinned, 1000, cudaHostAllocMapped));
  *managed = *pinned = 1;
  Add<<<1, 1>>>(managed, 1);
  Add<<<1, 1>>>(pinned, 1);
  CHECK(cudaDeviceReset());
  CHECK(cudaMallocManaged(&managed, 1000));
  *managed = 5;
  Add<<<1, 1>>>(managed, 2);
  CHECK(cudaDeviceSynchronize());
  EXPECT(*managed == 7, "after a reset: %d", *managed);
  CHECK(cudaFree(managed));
}

int main() {
  AllAndAgain();
  AfterReset();
  int* managed = nullptr;
  CHECK(cudaMallocManaged(&managed, 1000));
  *managed = 3;
  Fault<<<1, 1>>>(managed);
  EXPECT(cudaDeviceSynchronize() == cudaErrorIllegalAddress, "a fault was not told");
  EXPECT(*managed == 3, "the program's memory holds %d", *managed);
  *managed = 4;
  EXPECT(cudaFree(managed) == cudaErrorIllegalAddress, "the fault does not stay");
  return Pass("managed_end");
}
