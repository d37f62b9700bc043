// What device memory costs a program: pairs of allocation and free, buffers that grow, and how much
// of what is free can be had in one piece. Prints "name value unit" lines. Sizes follow the
// device's memory, so that it also runs on a small one.
//
//   memory_figures [pairs] [growth] [fragments] [SECONDS of filling]
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "figures.h"

namespace longwire::bench {
namespace {

constexpr size_t kMiB = size_t{1} << 20;
constexpr size_t kBlock = 64 * kMiB;

void Check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "memory_figures: %s: %s\n", what, cudaGetErrorString(error));
  std::exit(1);
}

// One word of each stretch: what is there, without the time to read all of it.
__global__ void Mark(unsigned* words, size_t stretch, size_t count, unsigned seed) {
  const size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x;
  if (i < count) words[i * stretch / sizeof(unsigned)] = seed + static_cast<unsigned>(i);
}

__global__ void CountWrong(const unsigned* words, size_t stretch, size_t count, unsigned seed,
                           unsigned* wrong) {
  const size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x;
  if (i < count && words[i * stretch / sizeof(unsigned)] != seed + static_cast<unsigned>(i)) {
    atomicAdd(wrong, 1);
  }
}

constexpr size_t kMarks = 1024;
constexpr unsigned kMarkBlocks = kMarks / 64;

void* Allocate(size_t bytes) {
  void* memory = nullptr;
  Check(cudaMalloc(&memory, bytes), "cudaMalloc");
  return memory;
}

std::string SizeName(size_t bytes) {
  if (bytes >= kMiB) return std::to_string(bytes / kMiB) + "m";
  return bytes >= 1024 ? std::to_string(bytes / 1024) + "k" : std::to_string(bytes);
}

// A pair's time of 1,000, the wait at the end included.
template <class Pair>
double TimeOfPairs(Pair pair) {
  constexpr int kPairs = 1000;
  return MedianTime(5,
                    [&] {
                      for (int i = 0; i < kPairs; ++i) pair();
                      Check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
                    }) /
         kPairs;
}

// 256 B to 64 MiB, by themselves and with a kernel that uses the memory; and what that kernel
// costs.
void Pairs() {
  auto* mine = static_cast<unsigned*>(Allocate(kMiB));
  Print("kernel_alone", TimeOfPairs([&] { Mark<<<1, 1>>>(mine, 1, 1, 1); }), "us");
  Check(cudaFree(mine), "cudaFree");
  for (size_t bytes = 256; bytes <= kBlock; bytes *= 8) {
    std::string size = SizeName(bytes);
    double plain = TimeOfPairs([&] { Check(cudaFree(Allocate(bytes)), "cudaFree"); });
    Print(("pair_" + size).c_str(), plain, "us");
    double used = TimeOfPairs([&] {
      auto* words = static_cast<unsigned*>(Allocate(bytes));
      Mark<<<1, 1>>>(words, bytes, 1, 1);
      Check(cudaFree(words), "cudaFree");
    });
    Print(("pair_kernel_" + size).c_str(), used, "us");
  }
}

// Blocks that nothing is there for yet: through Longwire the lease grows with each. And the same
// with a first kernel that uses the block, and its end.
void Leases() {
  std::vector<void*> blocks;
  std::vector<double> times, used;
  auto allocate = [&] { blocks.push_back(Allocate(kBlock)); };
  for (int i = 0; i < 8; ++i) times.push_back(TimeOf(allocate));
  Check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  auto use = [&] {
    allocate();
    Mark<<<1, 1>>>(static_cast<unsigned*>(blocks.back()), kBlock, 1, 1);
    Check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  };
  for (int i = 0; i < 8; ++i) used.push_back(TimeOf(use));
  Print("new_64m", Median(times), "us");
  Print("new_64m_longest", *std::max_element(times.begin(), times.end()), "us");
  Print("new_64m_and_kernel", Median(used), "us");
  for (void* block : blocks) Check(cudaFree(block), "cudaFree");
}

struct GrowthTimes {
  double thread = 0;  // until the free has returned
  double whole = 0;   // and everything is over
};

// One growth from `bytes` to twice as many, from the allocation of the larger buffer on.
GrowthTimes GrowOnce(size_t bytes, unsigned seed) {
  const size_t stretch = bytes / kMarks / 256 * 256;
  auto* buffer = static_cast<unsigned*>(Allocate(bytes));
  Mark<<<kMarkBlocks, 64>>>(buffer, stretch, kMarks, seed);
  Check(cudaDeviceSynchronize(), "the first buffer");
  auto begun = Clock::now();
  auto* larger = static_cast<unsigned*>(Allocate(2 * bytes));
  Check(cudaMemcpyAsync(larger, buffer, bytes, cudaMemcpyDeviceToDevice), "copy");
  Check(cudaFree(buffer), "cudaFree");
  GrowthTimes times;
  times.thread = Microseconds(begun, Clock::now());
  Check(cudaDeviceSynchronize(), "growth");
  times.whole = Microseconds(begun, Clock::now());
  auto* wrong = static_cast<unsigned*>(Allocate(sizeof(unsigned)));
  Check(cudaMemset(wrong, 0, sizeof(unsigned)), "memset");
  CountWrong<<<kMarkBlocks, 64>>>(larger, stretch, kMarks, seed, wrong);
  unsigned host = 0;
  Check(cudaMemcpy(&host, wrong, sizeof(host), cudaMemcpyDeviceToHost), "download");
  if (host != 0) {
    std::fprintf(stderr, "memory_figures: %u marks are wrong after the growth\n", host);
    std::exit(1);
  }
  Check(cudaFree(wrong), "cudaFree");
  Check(cudaFree(larger), "cudaFree");
  return times;
}

void Growth(size_t total) {
  // 1.5 and 15 GiB where there is room for three times as much.
  for (size_t most : {size_t{1536} * kMiB, size_t{15360} * kMiB}) {
    bool small = total / 4 < most;
    size_t bytes = small ? total / 8 / kBlock * kBlock : most;
    if (bytes == 0) return;
    std::vector<double> thread, whole;
    for (unsigned round = 0; round < 10; ++round) {
      GrowthTimes times = GrowOnce(bytes, round * 5000);
      thread.push_back(times.thread);
      whole.push_back(times.whole);
    }
    std::string name = "grow_" + std::to_string(bytes / kMiB) + "m";
    Print((name + "_thread").c_str(), Median(thread), "us");
    Print((name + "_whole").c_str(), Median(whole), "us");
    Print((name + "_first").c_str(), whole.front(), "us");
    if (small) return;
  }
}

// Fills the device with blocks, frees and allocates some at random for `seconds`, frees a half, and
// asks for the largest piece there is.
void Fragments(double seconds) {
  std::mt19937_64 random(7);
  std::vector<void*> blocks;
  void* block = nullptr;
  while (cudaMalloc(&block, kBlock) == cudaSuccess) blocks.push_back(block);
  (void)cudaGetLastError();
  auto until = Clock::now() + std::chrono::duration<double>(seconds);
  while (Clock::now() < until && !blocks.empty()) {
    for (size_t i = 0; i < blocks.size() / 10 + 1; ++i) {
      std::swap(blocks[random() % blocks.size()], blocks.back());
      Check(cudaFree(blocks.back()), "cudaFree");
      blocks.pop_back();
      if (blocks.empty()) break;
    }
    while (cudaMalloc(&block, kBlock) == cudaSuccess) blocks.push_back(block);
    (void)cudaGetLastError();
    std::this_thread::sleep_for(std::chrono::seconds(1));
  }
  std::shuffle(blocks.begin(), blocks.end(), random);
  size_t freed = 0;
  for (size_t half = blocks.size() / 2; blocks.size() > half; freed += kBlock) {
    Check(cudaFree(blocks.back()), "cudaFree");
    blocks.pop_back();
  }
  // To a hundredth of what is free.
  size_t low = 0, high = 100;
  while (low < high) {
    size_t middle = (low + high + 1) / 2;
    bool fits = cudaMalloc(&block, freed / 100 * middle) == cudaSuccess;
    if (fits) Check(cudaFree(block), "cudaFree");
    (void)cudaGetLastError();
    (fits ? low : high) = fits ? middle : middle - 1;
  }
  Print("fragments_freed", static_cast<double>(freed) / kMiB, "MiB");
  Print("fragments_in_one_piece", static_cast<double>(low), "%");
  for (void* each : blocks) Check(cudaFree(each), "cudaFree");
}

}  // namespace
}  // namespace longwire::bench

int main(int count, char** arguments) {
  using namespace longwire::bench;
  double seconds = 3;
  std::vector<std::string> parts;
  for (int i = 1; i < count; ++i) {
    char* end = nullptr;
    double number = std::strtod(arguments[i], &end);
    if (*end == 0) {
      seconds = number;
    } else {
      parts.push_back(arguments[i]);
    }
  }
  auto asked = [&](const char* part) {
    return parts.empty() || std::find(parts.begin(), parts.end(), part) != parts.end();
  };
  size_t free_bytes = 0, total = 0;
  Check(cudaMemGetInfo(&free_bytes, &total), "cudaMemGetInfo");
  if (asked("pairs")) {
    Leases();
    Pairs();
  }
  if (asked("growth")) Growth(total);
  if (asked("fragments")) Fragments(seconds);
  return 0;
}
