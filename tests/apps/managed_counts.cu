// Host and device change managed memory at the same time: with the right outcome, or with an error
// from the call that waits, never with success and a count that is missing. What they change apart,
// or to the same value, is nobody's business.
#include <chrono>
#include <cstring>
#include <thread>

#include "check.h"

namespace {

constexpr unsigned kTurns = 64, kThreads = 64;
constexpr unsigned kByHost = 1000;

__global__ void Count(unsigned* counter, unsigned long long turns) {
  for (unsigned i = 0; i < kTurns; ++i) atomicAdd_system(counter, 1);
  volatile unsigned long long spent = 0;
  for (unsigned long long i = 0; i < turns; ++i) spent += i;
}

__global__ void Store(unsigned char* bytes, size_t first, size_t step, size_t count,
                      unsigned char value) {
  for (size_t i = 0; i < count; ++i) bytes[first + i * step] = value;
}

void CountHere(unsigned* counter) {
  for (unsigned i = 0; i < kByHost; ++i) __atomic_fetch_add(counter, 1, __ATOMIC_SEQ_CST);
}

// The sum, or the error; which of them depends on who comes first.
bool IsTold(cudaError_t code, unsigned counted, const char* what) {
  cudaGetLastError();
  if (code == cudaSuccess) {
    EXPECT(counted == kTurns * kThreads + kByHost, "%s: success, and %u counted", what, counted);
    return false;
  }
  EXPECT(code == cudaErrorNotSupported, "%s: error %d", what, code);
  // It does not stay.
  CHECK(cudaDeviceSynchronize());
  return true;
}

// Until the kernel has finished the program sees nothing of what it counted.
bool CountBeside(unsigned* counter, cudaStream_t stream) {
  *counter = 0;
  CHECK(cudaDeviceSynchronize());
  Count<<<1, kThreads, 0, stream>>>(counter, 1000);
  CountHere(counter);
  cudaError_t code = cudaStreamSynchronize(stream);
  return IsTold(code, *counter, "beside a kernel");
}

// What the program counted is on its way to the device when the next kernel is launched.
bool CountBetween(unsigned* counter, unsigned* other, cudaStream_t stream) {
  *counter = 0;
  CHECK(cudaDeviceSynchronize());
  Count<<<1, kThreads, 0, stream>>>(counter, 0);
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  CountHere(counter);
  Store<<<1, 1, 0, stream>>>(reinterpret_cast<unsigned char*>(other), 0, 1, 4, 1);
  cudaError_t code = cudaStreamSynchronize(stream);
  return IsTold(code, *counter, "between two kernels");
}

// Every second byte each, within the same words.
void ChangeNeighbours(unsigned char* bytes, size_t count, cudaStream_t stream) {
  std::memset(bytes, 0, count);
  CHECK(cudaDeviceSynchronize());
  Store<<<1, 1, 0, stream>>>(bytes, 0, 2, count / 2, 7);
  for (size_t i = 1; i < count; i += 2) bytes[i] = 9;
  Store<<<1, 1, 0, stream>>>(bytes, 0, 2, count / 4, 8);
  CHECK(cudaStreamSynchronize(stream));
  for (size_t i = 0; i < count; ++i) {
    const int wanted = i % 2 != 0 ? 9 : i < count / 2 ? 8 : 7;
    EXPECT(bytes[i] == wanted, "byte %zu is %d, not %d", i, bytes[i], wanted);
  }
}

void ChangeAlike(unsigned char* bytes, size_t count, cudaStream_t stream) {
  std::memset(bytes, 0, count);
  CHECK(cudaDeviceSynchronize());
  Store<<<1, 1, 0, stream>>>(bytes, 0, 1, count, 5);
  std::memset(bytes, 5, count);
  CHECK(cudaStreamSynchronize(stream));
  for (size_t i = 0; i < count; ++i) EXPECT(bytes[i] == 5, "byte %zu is %d", i, bytes[i]);
}

// Turn by turn each changes what the other one has written: nothing of it is at the same time.
void TakeTurns(unsigned char* bytes, size_t count, cudaStream_t stream) {
  for (int turn = 0; turn < 20; ++turn) {
    std::memset(bytes, turn, count);
    Store<<<1, 1, 0, stream>>>(bytes, 0, 1, count, 100 + turn);
    CHECK(cudaStreamSynchronize(stream));
    EXPECT(bytes[count - 1] == 100 + turn, "in turn %d byte is %d", turn, bytes[count - 1]);
  }
}

}  // namespace

int main() {
  unsigned* counters;
  unsigned char* bytes;
  cudaStream_t stream;
  CHECK(cudaMallocManaged(&counters, 4096));
  CHECK(cudaMallocManaged(&bytes, 1 << 20));
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  std::printf("counting at %p\n", static_cast<void*>(counters));
  int concurrent = 0;
  CHECK(cudaDeviceGetAttribute(&concurrent, cudaDevAttrConcurrentManagedAccess, 0));
  int told = 0;
  for (int i = 0; i < 5; ++i) {
    told += CountBeside(counters, stream);
    told += CountBetween(counters, counters + 512, stream);
  }
  // A device that really has the memory in common counts right.
  EXPECT((told > 0) == (concurrent == 0), "%d errors", told);
  ChangeNeighbours(bytes, 4096, stream);
  ChangeNeighbours(bytes, 1 << 16, stream);
  ChangeAlike(bytes, 1 << 16, stream);
  TakeTurns(bytes, 1 << 16, stream);
  return Pass("managed_counts");
}
