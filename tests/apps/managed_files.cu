// System calls read and write managed and pinned memory like any other, also while it has just been
// handed to the device and back: nothing about it is protected.
#include <cuda_runtime.h>
#include <unistd.h>

#include <cstring>

#include "check.h"

constexpr int kBytes = 300000;

__global__ void Invert(unsigned char* bytes) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < kBytes) bytes[i] = ~bytes[i];
}

static unsigned char Pattern(int i, int round) {
  return static_cast<unsigned char>(i * 31 + i / 1000 + round);
}

static void ThroughFile(unsigned char* memory, const char* what) {
  char name[] = "/tmp/managed-files-XXXXXX";
  const int file = mkstemp(name);
  EXPECT(file >= 0, "no temporary file");
  unlink(name);
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < kBytes; ++i) memory[i] = Pattern(i, round);
    Invert<<<(kBytes + 255) / 256, 256>>>(memory);
    CHECK(cudaDeviceSynchronize());
    EXPECT(pwrite(file, memory, kBytes, 0) == kBytes, "%s: it could not be written", what);
    std::memset(memory, 0, kBytes);
    Invert<<<1, 256>>>(memory);
    CHECK(cudaDeviceSynchronize());
    EXPECT(pread(file, memory, kBytes, 0) == kBytes, "%s: it could not be read", what);
    Invert<<<(kBytes + 255) / 256, 256>>>(memory);
    CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < kBytes; ++i) {
      EXPECT(memory[i] == Pattern(i, round), "%s: byte %d is %d", what, i, memory[i]);
    }
  }
  close(file);
}

int main() {
  unsigned char *managed = nullptr, *pinned = nullptr;
  CHECK(cudaMallocManaged(&managed, kBytes));
  CHECK(cudaHostAlloc(&pinned, kBytes, cudaHostAllocMapped));
  ThroughFile(managed, "managed memory");
  ThroughFile(pinned, "pinned memory");
  CHECK(cudaFree(managed));
  CHECK(cudaFreeHost(pinned));
  return Pass("managed_files");
}
