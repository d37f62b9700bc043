// Memory that is freed while a kernel still writes to it, and allocated again at once: the kernel's
// late writes are in nobody's new memory, whichever stream uses it, and what all rounds have
// written is counted on the device.
#include <vector>

#include "check.h"

constexpr int kCount = 1 << 20;
constexpr size_t kBytes = 96 << 20;  // more than there is of small pieces
constexpr int kRounds = 40;

// The larger `turns`, the later it writes.
__global__ void WriteLate(int* values, int value, int turns) {
  int x = value;
  for (int turn = 0; turn < turns; ++turn) x = x * 1664525 + 1013904223;
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  values[i] = value + (x == 0x7fffffff && turns < 0 ? 1 : 0);
}

__global__ void CountWrong(const int* values, int value, int* wrong) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (values[i] != value) atomicAdd(wrong, 1);
}

struct Memory {
  int* values = nullptr;
  Memory() { CHECK(cudaMalloc(&values, kBytes)); }
  ~Memory() { CHECK(cudaFree(values)); }
  void Write(int value, int turns, cudaStream_t stream) {
    WriteLate<<<kCount / 256, 256, 0, stream>>>(values, value, turns);
    CHECK(cudaGetLastError());
  }
  void Check(int value, int* wrong, cudaStream_t stream) {
    CountWrong<<<kCount / 256, 256, 0, stream>>>(values, value, wrong);
    CHECK(cudaGetLastError());
  }
};

// The old memory's kernel is slow, the new one's quick. `own`: of a stream of each round.
static void Round(int round, bool own, int* wrong) {
  Memory().Write(-round, 200, cudaStreamLegacy);
  Memory again;
  cudaStream_t stream = cudaStreamLegacy;
  if (own) CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  again.Write(round, 0, stream);
  again.Check(round, wrong, stream);
  if (!own) return;
  CHECK(cudaDeviceSynchronize());
  again.Check(round, wrong, stream);
  CHECK(cudaStreamSynchronize(stream));
  CHECK(cudaStreamDestroy(stream));
}

int main() {
  int* wrong = nullptr;
  CHECK(cudaMalloc(&wrong, sizeof(int)));
  CHECK(cudaMemset(wrong, 0, sizeof(int)));
  for (int round = 1; round <= kRounds; ++round) Round(round, false, wrong);
  for (int round = 1; round <= kRounds; ++round) Round(round, true, wrong);
  int host = -1;
  CHECK(cudaMemcpy(&host, wrong, sizeof(int), cudaMemcpyDeviceToHost));
  EXPECT(host == 0, "%d elements were another's", host);
  return Pass("freed_early");
}
