// The legacy default stream and blocking streams wait for each other, also where a call is no work
// of its stream: a free in a stream, a copy from the program's memory to its memory, and one of
// pageable memory. Streams that do not block are not in that order.
#include <cstring>
#include <vector>

#include "check.h"

constexpr size_t kBytes = 1 << 20, kWritten = 4096;
constexpr unsigned long long kLong = 300'000;

__global__ void Write(unsigned char* bytes, unsigned long long turns, unsigned char value) {
  volatile unsigned long long spent = 0;
  for (unsigned long long i = 0; i < turns; ++i) spent += i;
  for (size_t i = 0; i < kWritten; ++i) bytes[i] = value;
}

static unsigned char FirstByte(const unsigned char* device) {
  unsigned char byte = 0;
  CHECK(cudaMemcpy(&byte, device, 1, cudaMemcpyDeviceToHost));
  return byte;
}

// What `apart` allocates must not be the memory that is still written to.
static void FreeBehindWork(cudaStream_t works, cudaStream_t frees, cudaStream_t apart) {
  unsigned char *freed, *next;
  CHECK(cudaMallocAsync(&freed, kBytes, works));
  Write<<<1, 1, 0, works>>>(freed, kLong, 0xaa);
  CHECK(cudaFreeAsync(freed, frees));
  CHECK(cudaMallocAsync(&next, kBytes, apart));
  Write<<<1, 1, 0, apart>>>(next, 1, 0x55);
  CHECK(cudaDeviceSynchronize());
  EXPECT(FirstByte(next) == 0x55, "a kernel from before the free wrote into the next allocation");
  CHECK(cudaFreeAsync(next, apart));
}

static void CopyInHostMemory(cudaStream_t works, cudaStream_t copies) {
  unsigned char *device, *source, *target;
  CHECK(cudaMalloc(&device, kWritten));
  CHECK(cudaMallocHost(&source, kWritten));
  CHECK(cudaMallocHost(&target, kWritten));
  std::memset(source, 1, kWritten);
  std::memset(target, 2, kWritten);
  Write<<<1, 1, 0, works>>>(device, kLong, 0xaa);
  CHECK(cudaMemcpyAsync(source, device, kWritten, cudaMemcpyDeviceToHost, works));
  CHECK(cudaMemcpyAsync(target, source, kWritten, cudaMemcpyHostToHost, copies));
  CHECK(cudaDeviceSynchronize());
  EXPECT(target[0] == 0xaa, "byte %d was copied from before the stream's earlier work", target[0]);
  CHECK(cudaFree(device));
  CHECK(cudaFreeHost(source));
  CHECK(cudaFreeHost(target));
}

static void UploadBehindWork(cudaStream_t works, cudaStream_t copies) {
  unsigned char* device;
  std::vector<unsigned char> bytes(kBytes, 0x55);
  CHECK(cudaMalloc(&device, kBytes));
  Write<<<1, 1, 0, works>>>(device, kLong, 0xaa);
  CHECK(cudaMemcpyAsync(device, bytes.data(), kBytes, cudaMemcpyHostToDevice, copies));
  CHECK(cudaDeviceSynchronize());
  EXPECT(FirstByte(device) == 0x55, "the earlier kernel wrote over the upload");
  CHECK(cudaFree(device));
}

int main() {
  cudaStream_t blocking, apart;
  CHECK(cudaStreamCreate(&blocking));
  CHECK(cudaStreamCreateWithFlags(&apart, cudaStreamNonBlocking));
  unsigned char* first;
  CHECK(cudaMalloc(&first, kWritten));
  Write<<<1, 1>>>(first, 1, 0);  // loads the code, which waits
  CHECK(cudaDeviceSynchronize());
  for (int round = 0; round < 3; ++round) {
    FreeBehindWork(blocking, blocking, apart);
    FreeBehindWork(blocking, cudaStreamLegacy, apart);
    FreeBehindWork(cudaStreamLegacy, blocking, apart);
    CopyInHostMemory(blocking, blocking);
    CopyInHostMemory(blocking, cudaStreamLegacy);
    CopyInHostMemory(cudaStreamLegacy, blocking);
    UploadBehindWork(blocking, cudaStreamLegacy);
    UploadBehindWork(cudaStreamLegacy, blocking);
  }
  CHECK(cudaFree(first));
  return Pass("legacy_order");
}
