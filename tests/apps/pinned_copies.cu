// Copies between pinned and device memory of every kind but those in graphs: what arrives, in which
// order with kernels, events and host functions, and that memory can be freed behind a copy.
// Nothing of it needs memory that is not pinned.
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <vector>

#include "check.h"

using Byte = unsigned char;

template <class T>
T* Pinned(size_t count) {
  void* memory = nullptr;
  CHECK(cudaMallocHost(&memory, count * sizeof(T)));
  return static_cast<T*>(memory);
}

template <class T>
T* OnDevice(size_t count) {
  void* memory = nullptr;
  CHECK(cudaMalloc(&memory, count * sizeof(T)));
  return static_cast<T*>(memory);
}

static Byte PatternAt(size_t i, int seed) { return static_cast<Byte>(i * 31 + i / 253 + seed); }

static void Fill(Byte* memory, size_t bytes, int seed) {
  for (size_t i = 0; i < bytes; ++i) memory[i] = PatternAt(i, seed);
}

// `from`: of the pattern's place where the memory begins.
static void Expect(const Byte* memory, size_t bytes, int seed, const char* what, size_t from = 0) {
  for (size_t i = 0; i < bytes; ++i) {
    EXPECT(memory[i] == PatternAt(from + i, seed), "%s: byte %zu of %zu is %d", what, i, bytes,
           memory[i]);
  }
}

__global__ void AddLate(int* values, int count, int what, int turns) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  int x = what;
  for (int turn = 0; turn < turns; ++turn) x = x * 1664525 + 1013904223;
  if (i < count) values[i] += what + (x == 0x7fffffff && turns < 0 ? 1 : 0);
}

constexpr int kCount = 20'000;  // more bytes than ride in a call's own record

static void TestSizes(cudaStream_t stream) {
  const size_t sizes[] = {1, 4, 4097, 65536, 65537, 1 << 20, (5 << 20) + 3};
  for (size_t bytes : sizes) {
    Byte *up = Pinned<Byte>(bytes), *down = Pinned<Byte>(bytes);
    Byte* device = OnDevice<Byte>(bytes);
    Fill(up, bytes, 3);
    std::memset(down, 0, bytes);
    CHECK(cudaMemcpyAsync(device, up, bytes, cudaMemcpyHostToDevice, stream));
    CHECK(cudaMemcpyAsync(down, device, bytes, cudaMemcpyDeviceToHost, stream));
    CHECK(cudaStreamSynchronize(stream));
    Expect(down, bytes, 3, "there and back");
    // A part of it, at an odd place.
    if (bytes > 4096) {
      CHECK(cudaMemcpyAsync(down, device + 1001, bytes - 2002, cudaMemcpyDeviceToHost, stream));
      CHECK(cudaStreamSynchronize(stream));
      Expect(down, bytes - 2002, 3, "a part", 1001);
    }
    CHECK(cudaFreeHost(up));
    CHECK(cudaFreeHost(down));
    CHECK(cudaFree(device));
  }
}

static void TestRows(cudaStream_t stream) {
  constexpr size_t kWidth = 700, kRows = 90, kPitch = 1000;
  Byte *host = Pinned<Byte>(kPitch * kRows), *back = Pinned<Byte>(kWidth * kRows);
  Byte* device = OnDevice<Byte>(kWidth * kRows);
  Fill(host, kPitch * kRows, 8);
  CHECK(cudaMemcpy2DAsync(device, kWidth, host, kPitch, kWidth, kRows, cudaMemcpyHostToDevice,
                          stream));
  CHECK(cudaMemcpyAsync(back, device, kWidth * kRows, cudaMemcpyDeviceToHost, stream));
  CHECK(cudaStreamSynchronize(stream));
  for (size_t row = 0; row < kRows; ++row) {
    EXPECT(std::memcmp(back + row * kWidth, host + row * kPitch, kWidth) == 0, "row %zu", row);
  }
  std::memset(host, 0, kPitch * kRows);
  CHECK(cudaMemcpy2DAsync(host, kPitch, device, kWidth, kWidth, kRows, cudaMemcpyDeviceToHost,
                          stream));
  CHECK(cudaStreamSynchronize(stream));
  for (size_t row = 0; row < kRows; ++row) {
    EXPECT(std::memcmp(back + row * kWidth, host + row * kPitch, kWidth) == 0, "row %zu", row);
    if (row + 1 == kRows) break;
    for (size_t i = kWidth; i < kPitch; ++i) {
      EXPECT(host[row * kPitch + i] == 0, "behind row %zu something was written", row);
    }
  }
  CHECK(cudaFreeHost(host));
  CHECK(cudaFreeHost(back));
  CHECK(cudaFree(device));
}

struct Turn {
  int* memory;
  int expected, next, wrong;
};

static void CUDART_CB LookAndWrite(void* argument) {
  Turn* turn = static_cast<Turn*>(argument);
  for (int i = 0; i < kCount; ++i) {
    turn->wrong += turn->memory[i] != turn->expected;
    turn->memory[i] = turn->next;
  }
}

// Down, a host function that looks and writes, up again; a kernel before and behind. Then the same
// memory up in another stream, behind an event.
static void TestOrder(cudaStream_t stream, cudaStream_t other) {
  int *host = Pinned<int>(kCount), *back = Pinned<int>(kCount);
  int *device = OnDevice<int>(kCount), *second = OnDevice<int>(kCount);
  cudaEvent_t event;
  CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  for (int round = 1; round <= 4; ++round) {
    Turn turn{host, round, 10 * round, 0};
    for (int i = 0; i < kCount; ++i) host[i] = -1;
    CHECK(cudaMemsetAsync(device, 0, kCount * sizeof(int), stream));
    AddLate<<<(kCount + 255) / 256, 256, 0, stream>>>(device, kCount, round, 50);
    CHECK(cudaMemcpyAsync(host, device, kCount * sizeof(int), cudaMemcpyDeviceToHost, stream));
    CHECK(cudaLaunchHostFunc(stream, LookAndWrite, &turn));
    CHECK(cudaMemcpyAsync(device, host, kCount * sizeof(int), cudaMemcpyHostToDevice, stream));
    AddLate<<<(kCount + 255) / 256, 256, 0, stream>>>(device, kCount, 1, 50);
    CHECK(cudaMemcpyAsync(host, device, kCount * sizeof(int), cudaMemcpyDeviceToHost, stream));
    CHECK(cudaEventRecord(event, stream));
    CHECK(cudaStreamWaitEvent(other, event, 0));
    CHECK(cudaMemcpyAsync(second, host, kCount * sizeof(int), cudaMemcpyHostToDevice, other));
    CHECK(cudaMemcpyAsync(back, second, kCount * sizeof(int), cudaMemcpyDeviceToHost, other));
    CHECK(cudaStreamSynchronize(other));
    EXPECT(turn.wrong == 0, "the host function saw %d wrong values", turn.wrong);
    for (int i = 0; i < kCount; ++i) {
      EXPECT(host[i] == 10 * round + 1 && back[i] == host[i], "%d and %d", host[i], back[i]);
    }
  }
  CHECK(cudaEventDestroy(event));
  CHECK(cudaFreeHost(host));
  CHECK(cudaFreeHost(back));
  CHECK(cudaFree(device));
  CHECK(cudaFree(second));
}

// The memory goes while a copy behind a long kernel still needs it; the next allocation may get the
// same place at once.
static void TestFreedBehindACopy(cudaStream_t stream) {
  constexpr size_t kBytes = (3 << 20) + 17;
  int* busy = OnDevice<int>(kCount);
  Byte* device = OnDevice<Byte>(kBytes);
  Byte* back = Pinned<Byte>(kBytes);
  for (int round = 0; round < 4; ++round) {
    Byte* source = Pinned<Byte>(kBytes);
    Fill(source, kBytes, round);
    AddLate<<<(kCount + 255) / 256, 256, 0, stream>>>(busy, kCount, 1, 200);
    CHECK(cudaMemcpyAsync(device, source, kBytes, cudaMemcpyHostToDevice, stream));
    CHECK(cudaFreeHost(source));
    Byte* next = Pinned<Byte>(kBytes);
    std::memset(next, 0xee, kBytes);
    CHECK(cudaMemcpyAsync(back, device, kBytes, cudaMemcpyDeviceToHost, stream));
    CHECK(cudaStreamSynchronize(stream));
    Expect(back, kBytes, round, "freed behind its copy");
    CHECK(cudaFreeHost(next));
  }
  CHECK(cudaFreeHost(back));
  CHECK(cudaFree(device));
  CHECK(cudaFree(busy));
}

static void TestManySmall(cudaStream_t stream) {
  std::vector<int*> pinned;
  int* device = OnDevice<int>(1000);
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 700; ++i) {
      pinned.push_back(Pinned<int>(1 + i));
      for (int j = 0; j <= i; ++j) pinned.back()[j] = i + round;
      CHECK(cudaMemcpyAsync(device, pinned[i], (1 + i) * sizeof(int), cudaMemcpyHostToDevice,
                            stream));
      CHECK(cudaMemcpyAsync(pinned[i], device, (1 + i) * sizeof(int), cudaMemcpyDeviceToHost,
                            stream));
    }
    CHECK(cudaStreamSynchronize(stream));
    for (int i = 0; i < 700; ++i) {
      EXPECT(pinned[i][i] == i + round, "small memory %d holds %d", i, pinned[i][i]);
      CHECK(cudaFreeHost(pinned[i]));
    }
    pinned.clear();
  }
  CHECK(cudaFree(device));
}

// A child sees what was there and goes its own way; the parent's copies go on.
static void TestFork(cudaStream_t stream) {
  constexpr size_t kBytes = 200'000;
  Byte* host = Pinned<Byte>(kBytes);
  Byte* device = OnDevice<Byte>(kBytes);
  Fill(host, kBytes, 77);
  CHECK(cudaMemcpyAsync(device, host, kBytes, cudaMemcpyHostToDevice, stream));
  CHECK(cudaStreamSynchronize(stream));
  const pid_t child = fork();
  if (child == 0) {
    for (size_t i = 0; i < kBytes; ++i) {
      if (host[i] != PatternAt(i, 77)) _exit(1);
    }
    const bool refused = cudaMemcpyAsync(device, host, kBytes, cudaMemcpyHostToDevice, stream) ==
                         cudaErrorInitializationError;
    _exit(refused ? 0 : 2);
  }
  int status = 0;
  EXPECT(waitpid(child, &status, 0) == child && status == 0, "the child ended with %x", status);
  std::memset(host, 0, kBytes);
  CHECK(cudaMemcpyAsync(host, device, kBytes, cudaMemcpyDeviceToHost, stream));
  CHECK(cudaStreamSynchronize(stream));
  Expect(host, kBytes, 77, "after a child");
  CHECK(cudaFreeHost(host));
  CHECK(cudaFree(device));
}

// The forms that wait.
static void TestWaiting() {
  constexpr size_t kBytes = 150'000;
  Byte *up = Pinned<Byte>(kBytes), *down = Pinned<Byte>(kBytes);
  Byte* device = OnDevice<Byte>(kBytes);
  for (int round = 0; round < 10; ++round) {
    Fill(up, kBytes, round);
    CHECK(cudaMemcpy(device, up, kBytes, cudaMemcpyHostToDevice));
    std::memset(up, 0xff, kBytes);
    CHECK(cudaMemcpy(down, device, kBytes, cudaMemcpyDeviceToHost));
    Expect(down, kBytes, round, "copies that wait");
  }
  CHECK(cudaFreeHost(up));
  CHECK(cudaFreeHost(down));
  CHECK(cudaFree(device));
}

int main() {
  cudaStream_t stream, other;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  CHECK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
  TestSizes(stream);
  TestRows(stream);
  TestOrder(stream, other);
  TestFreedBehindACopy(stream);
  TestManySmall(stream);
  TestFork(stream);
  TestWaiting();
  CHECK(cudaStreamDestroy(stream));
  CHECK(cudaStreamDestroy(other));
  return Pass("pinned_copies");
}
