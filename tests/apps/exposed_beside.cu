// Threads that copy, launch and wait notice nothing of others that let kernels reach pinned memory
// and take it back meanwhile.
#include <atomic>
#include <thread>
#include <vector>

#include "check.h"

constexpr int kRounds = 60, kThreads = 2;
constexpr size_t kBytes = 2 << 20, kWords = 5000;

__global__ void Add(unsigned* word, int times) {
  for (int i = 0; i < times; ++i) atomicAdd(word, 1u);
}

static std::atomic<bool> over{false};
static std::atomic<unsigned*> shared{nullptr};
static std::atomic<int> copying{0};

// To and from pinned memory that another thread exposes in just this moment.
static void CopyAllTheTime() {
  cudaStream_t stream;
  unsigned* device;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  CHECK(cudaMalloc(&device, kBytes));
  while (!over) {
    ++copying;
    if (unsigned* pinned = shared) {
      CHECK(cudaMemcpyAsync(pinned, device, 64, cudaMemcpyDeviceToHost, stream));
      CHECK(cudaMemcpyAsync(device, pinned, 64, cudaMemcpyHostToDevice, stream));
      CHECK(cudaStreamSynchronize(stream));
    }
    --copying;
  }
  CHECK(cudaFree(device));
}

static void Expose() {
  for (int round = 0; round < kRounds; ++round) {
    unsigned *pinned, *device;
    CHECK(cudaHostAlloc(&pinned, kBytes, cudaHostAllocMapped));
    *pinned = 0;
    shared = pinned + kBytes / 8;
    std::this_thread::sleep_for(std::chrono::microseconds(300));
    CHECK(cudaHostGetDevicePointer(&device, pinned, 0));
    Add<<<1, 1>>>(device, round);
    CHECK(cudaStreamSynchronize(nullptr));
    EXPECT(*pinned == static_cast<unsigned>(round), "%u, not %d", *pinned, round);
    shared = nullptr;
    while (copying != 0) std::this_thread::yield();
    CHECK(cudaFreeHost(pinned));
  }
}

static void LaunchAllTheTime() {
  cudaStream_t stream;
  unsigned *count, result = 0, launched = 0;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  CHECK(cudaMalloc(&count, sizeof(unsigned)));
  CHECK(cudaMemsetAsync(count, 0, sizeof(unsigned), stream));
  for (; !over; launched += 3) {
    for (int i = 0; i < 3; ++i) Add<<<1, 1, 0, stream>>>(count, 20);
    CHECK(cudaGetLastError());
    CHECK(cudaStreamSynchronize(stream));
  }
  CHECK(cudaMemcpy(&result, count, sizeof(unsigned), cudaMemcpyDeviceToHost));
  EXPECT(result == launched * 20, "%u, not %u: launches are lost or doubled", result,
         launched * 20);
  CHECK(cudaFree(count));
}

static void RegisterAndForget(unsigned* memory) {
  cudaStream_t stream;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  for (int round = 0; round < kRounds; ++round) {
    unsigned* device;
    CHECK(cudaHostRegister(memory, kWords * sizeof(unsigned), cudaHostRegisterMapped));
    CHECK(cudaHostGetDevicePointer(&device, memory, 0));
    Add<<<1, 1, 0, stream>>>(device, 1);
    CHECK(cudaStreamSynchronize(stream));
    CHECK(cudaHostUnregister(memory));
    EXPECT(*memory == round + 1u, "%u, not %d", *memory, round + 1);
  }
}

int main() {
  CHECK(cudaFree(nullptr));
  std::thread copier(CopyAllTheTime);
  Expose();
  over = true;
  copier.join();
  over = false;
  std::vector<std::thread> launching, registering;
  std::vector<std::vector<unsigned>> memory(kThreads, std::vector<unsigned>(kWords));
  for (int i = 0; i < kThreads; ++i) {
    launching.emplace_back(LaunchAllTheTime);
    registering.emplace_back(RegisterAndForget, memory[i].data());
  }
  for (std::thread& thread : registering) thread.join();
  over = true;
  for (std::thread& thread : launching) thread.join();
  return Pass("exposed_beside");
}
