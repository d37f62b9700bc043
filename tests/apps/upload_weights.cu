// Large copies to the device between kernels that read and write the same memory, and beside one
// that does not end before later work begins: each finds its own bytes, whoever kept them before.
#include <vector>

#include "check.h"

constexpr size_t kCount = size_t{3} << 18;  // 3 MiB
constexpr size_t kBytes = kCount * sizeof(unsigned);

static unsigned Weight(size_t index, unsigned seed) {
  return static_cast<unsigned>(index) * 2654435761u ^ seed;
}

static std::vector<unsigned> Weights(unsigned seed) {
  std::vector<unsigned> weights(kCount);
  for (size_t i = 0; i < kCount; ++i) weights[i] = Weight(i, seed);
  return weights;
}

__global__ void CountWrong(const unsigned* weights, unsigned seed, unsigned* wrong) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (weights[i] != ((i * 2654435761u) ^ seed)) atomicAdd(wrong, 1u);
}

__global__ void WaitFor(volatile unsigned* flag) {
  while (*flag == 0) {
  }
}

__global__ void Set(unsigned* flag) { *flag = 1; }

int main() {
  unsigned *device = nullptr, *wrong = nullptr, *flag = nullptr;
  CHECK(cudaMalloc(&device, kBytes));
  CHECK(cudaMalloc(&wrong, sizeof(unsigned)));
  CHECK(cudaMalloc(&flag, sizeof(unsigned)));
  CHECK(cudaMemset(wrong, 0, sizeof(unsigned)));
  CHECK(cudaMemset(flag, 0, sizeof(unsigned)));
  CHECK(cudaDeviceSynchronize());
  cudaStream_t waiting, working;
  CHECK(cudaStreamCreateWithFlags(&waiting, cudaStreamNonBlocking));
  CHECK(cudaStreamCreateWithFlags(&working, cudaStreamNonBlocking));
  const unsigned blocks = kCount / 256;

  // On the default stream; the bytes are the program's again at once.
  for (unsigned seed = 1; seed <= 3; ++seed) {
    std::vector<unsigned> weights = Weights(seed);
    CHECK(cudaMemcpy(device, weights.data(), kBytes, cudaMemcpyHostToDevice));
    weights.assign(kCount, 0);
    CountWrong<<<blocks, 256>>>(device, seed, wrong);
  }
  CHECK(cudaDeviceSynchronize());

  // In a stream, while another one waits for what comes after.
  WaitFor<<<1, 1, 0, waiting>>>(flag);
  for (unsigned seed = 4; seed <= 6; ++seed) {
    std::vector<unsigned> weights = Weights(seed);
    CHECK(cudaMemcpyAsync(device, weights.data(), kBytes, cudaMemcpyHostToDevice, working));
    CountWrong<<<blocks, 256, 0, working>>>(device, seed, wrong);
  }
  Set<<<1, 1, 0, working>>>(flag);
  CHECK(cudaDeviceSynchronize());

  // A part, at an offset; and more than the memory has.
  std::vector<unsigned> weights = Weights(7);
  CHECK(cudaMemcpy(device, weights.data(), kBytes / 2, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(device + kCount / 2, weights.data() + kCount / 2, kBytes / 2,
                   cudaMemcpyHostToDevice));
  CountWrong<<<blocks, 256>>>(device, 7, wrong);
  CHECK(cudaDeviceSynchronize());
  const cudaError_t beyond =
      cudaMemcpy(device + kCount / 2, weights.data(), kBytes, cudaMemcpyHostToDevice);
  EXPECT(beyond == cudaErrorInvalidValue, "beyond its end: %s", cudaGetErrorName(beyond));
  (void)cudaGetLastError();

  unsigned count = 1;
  CHECK(cudaMemcpy(&count, wrong, sizeof(count), cudaMemcpyDeviceToHost));
  EXPECT(count == 0, "%u weights were not those of their copy", count);
  return Pass("upload_weights");
}
