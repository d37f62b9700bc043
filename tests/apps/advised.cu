// For the tests of advice: a program that has the faults that its arguments name, each alone, and
// without them none.
#include <cstring>
#include <string>
#include <vector>

#include "check.h"

constexpr int kWords = 1 << 16;

__global__ void Increase(int* words, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) words[i] += 1;
}

// So much shared memory that few of its blocks run at once.
__global__ void Crowded(int* words) {
  __shared__ int shared[8192];
  shared[threadIdx.x * 64] = static_cast<int>(threadIdx.x);
  __syncthreads();
  if (threadIdx.x == 0) atomicAdd(words, shared[64]);
}

__global__ void Lone(int* word) { *word += 1; }

// Some time of one thread.
__global__ void Long(int* word, int steps) {
  int value = *word;
  for (int i = 0; i < steps; ++i) value = value * 3 + 1;
  *word = value;
}

static int* words;

static void Good() {
  for (int i = 0; i < 40; ++i) Increase<<<kWords / 256, 256>>>(words, kWords);
}

static void Low() {
  for (int i = 0; i < 12; ++i) Crowded<<<2000, 64>>>(words);
}

static void Tiny(int launches) {
  for (int i = 0; i < launches; ++i) Lone<<<1, 1>>>(words);
}

static void Waits(bool waits) {
  for (int i = 0; i < 300; ++i) {
    Long<<<1, 1>>>(words, 4000);
    if (waits) CHECK(cudaDeviceSynchronize());
  }
}

static void Copies(bool pinned) {
  constexpr size_t kBytes = size_t{1} << 20;
  void* host = nullptr;
  std::vector<char> pageable(pinned ? 0 : kBytes);
  if (pinned) CHECK(cudaMallocHost(&host, kBytes));
  if (!pinned) host = pageable.data();
  std::memset(host, 1, kBytes);
  void* device = nullptr;
  CHECK(cudaMalloc(&device, kBytes));
  for (int i = 0; i < 20; ++i) {
    CHECK(cudaMemcpy(device, host, kBytes, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(host, device, kBytes, cudaMemcpyDeviceToHost));
  }
  CHECK(cudaFree(device));
  if (pinned) CHECK(cudaFreeHost(host));
}

// The default stream and another one take turns.
static void Turns(unsigned flags) {
  cudaStream_t stream = nullptr;
  CHECK(cudaStreamCreateWithFlags(&stream, flags));
  for (int i = 0; i < 60; ++i) {
    Increase<<<kWords / 256, 256>>>(words, kWords);
    Increase<<<kWords / 256, 256, 0, stream>>>(words, kWords);
  }
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaStreamDestroy(stream));
}

int main(int count, char** arguments) {
  CHECK(cudaMalloc(&words, kWords * sizeof(int)));
  CHECK(cudaMemset(words, 0, kWords * sizeof(int)));
  Good();
  for (int i = 1; i < count; ++i) {
    const std::string word = arguments[i];
    if (word == "low") Low();
    if (word == "tiny") Tiny(4000);
    if (word == "few") Tiny(40);
    if (word == "pageable") Copies(false);
    if (word == "pinned") Copies(true);
    if (word == "turns") Turns(cudaStreamDefault);
    if (word == "beside") Turns(cudaStreamNonBlocking);
    if (word == "waits") Waits(true);
    if (word == "flows") Waits(false);
    if (word == "ready") {  // goes on with a line of input
      CHECK(cudaDeviceSynchronize());
      std::printf("READY\n");
      std::fflush(stdout);
      char line[8];
      if (std::fgets(line, sizeof line, stdin) == nullptr) return 1;
    }
  }
  CHECK(cudaDeviceSynchronize());
  return Pass("advised");
}
