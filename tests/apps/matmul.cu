// Multiplies two matrices by 16 x 16 tiles in shared memory. Small whole numbers keep every
// product and sum exact in float, so the host's result must match bit for bit.
#include <vector>

#include "check.h"

constexpr int kTile = 16;
constexpr int kRows = 112, kInner = 96, kColumns = 128;

__global__ void Multiply(const float* a, const float* b, float* c, int inner, int columns) {
  __shared__ float tile_a[kTile][kTile];
  __shared__ float tile_b[kTile][kTile];
  const int row = blockIdx.y * kTile + threadIdx.y;
  const int column = blockIdx.x * kTile + threadIdx.x;
  float sum = 0;
  for (int first = 0; first < inner; first += kTile) {
    tile_a[threadIdx.y][threadIdx.x] = a[row * inner + first + threadIdx.x];
    tile_b[threadIdx.y][threadIdx.x] = b[(first + threadIdx.y) * columns + column];
    __syncthreads();
    for (int k = 0; k < kTile; ++k) sum += tile_a[threadIdx.y][k] * tile_b[k][threadIdx.x];
    __syncthreads();
  }
  c[row * columns + column] = sum;
}

int main() {
  std::vector<float> a(kRows * kInner), b(kInner * kColumns), c(kRows * kColumns);
  for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(static_cast<int>(i % 17) - 8);
  for (size_t i = 0; i < b.size(); ++i) b[i] = static_cast<float>(static_cast<int>(i % 13) - 6);
  float *device_a, *device_b, *device_c;
  CHECK(cudaMalloc(&device_a, a.size() * sizeof(float)));
  CHECK(cudaMalloc(&device_b, b.size() * sizeof(float)));
  CHECK(cudaMalloc(&device_c, c.size() * sizeof(float)));
  CHECK(cudaMemcpy(device_a, a.data(), a.size() * sizeof(float), cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(device_b, b.data(), b.size() * sizeof(float), cudaMemcpyHostToDevice));
  Multiply<<<dim3(kColumns / kTile, kRows / kTile), dim3(kTile, kTile)>>>(
      device_a, device_b, device_c, kInner, kColumns);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(c.data(), device_c, c.size() * sizeof(float), cudaMemcpyDeviceToHost));
  for (int row = 0; row < kRows; ++row) {
    for (int column = 0; column < kColumns; ++column) {
      float sum = 0;
      for (int k = 0; k < kInner; ++k) sum += a[row * kInner + k] * b[k * kColumns + column];
      EXPECT(c[row * kColumns + column] == sum, "(%d,%d) is %g, not %g", row, column,
             c[row * kColumns + column], sum);
    }
  }
  CHECK(cudaFree(device_a));
  CHECK(cudaFree(device_b));
  CHECK(cudaFree(device_c));
  return Pass("matmul");
}
