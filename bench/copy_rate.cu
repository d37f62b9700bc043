// Copies pageable memory to the device and back and says how long each took: copy_rate MIB CONTENT
// ROUNDS. CONTENT is what the bytes are: indices (small integers), weights (floats between -1 and
// 1, rounded to bfloat16) or random.
#include <cuda_runtime.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

namespace {

void Check(cudaError_t code, const char* what) {
  if (code == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(code));
  std::exit(1);
}

std::vector<uint32_t> Content(const char* kind, size_t words) {
  std::vector<uint32_t> content(words);
  std::mt19937_64 random(1);
  bool indices = std::strcmp(kind, "indices") == 0, weights = std::strcmp(kind, "weights") == 0;
  for (uint32_t& word : content) {
    auto bits = static_cast<uint32_t>(random());
    float value = static_cast<float>(bits) / 2147483648.0f - 1.0f;
    if (weights) std::memcpy(&word, &value, sizeof(word));
    word = indices ? bits % 1000 : weights ? word & 0xffff0000u : bits;
  }
  return content;
}

template <class Copy>
double Seconds(Copy copy) {
  auto begun = std::chrono::steady_clock::now();
  copy();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 4) return 2;
  size_t bytes = std::strtoull(arguments[1], nullptr, 10) << 20;
  std::vector<uint32_t> up = Content(arguments[2], bytes / sizeof(uint32_t)), down(up.size());
  void* device = nullptr;
  Check(cudaMalloc(&device, bytes), "cudaMalloc");
  for (int round = std::atoi(arguments[3]); round > 0; --round) {
    double there = Seconds([&] {
      Check(cudaMemcpy(device, up.data(), bytes, cudaMemcpyHostToDevice), "copy up");
      Check(cudaDeviceSynchronize(), "copy up");
    });
    double back = Seconds([&] {
      Check(cudaMemcpy(down.data(), device, bytes, cudaMemcpyDeviceToHost), "copy down");
    });
    std::printf("up %.4f down %.4f\n", there, back);
    if (up != down) return 1;
  }
  return 0;
}
