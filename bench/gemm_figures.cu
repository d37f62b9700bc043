// A matrix product as a program would do it: upload, tiled kernel, download of one row, checked.
// Prints "name value unit" lines.
#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

constexpr int kTile = 16;

void Check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "gemm_figures: %s: %s\n", what, cudaGetErrorString(error));
  std::exit(1);
}

__global__ void Multiply(const float* a, const float* b, float* c, int n) {
  __shared__ float left[kTile][kTile], right[kTile][kTile];
  int row = blockIdx.y * kTile + threadIdx.y, column = blockIdx.x * kTile + threadIdx.x;
  float sum = 0;
  for (int tile = 0; tile < n; tile += kTile) {
    left[threadIdx.y][threadIdx.x] = a[row * n + tile + threadIdx.x];
    right[threadIdx.y][threadIdx.x] = b[(tile + threadIdx.y) * n + column];
    __syncthreads();
    for (int k = 0; k < kTile; ++k) sum += left[threadIdx.y][k] * right[k][threadIdx.x];
    __syncthreads();
  }
  c[row * n + column] = sum;
}

}  // namespace

int main() {
  cudaDeviceProp device{};
  Check(cudaGetDeviceProperties(&device, 0), "cudaGetDeviceProperties");
  // What the software device interprets in a moment is nothing for a GPU.
  int n = std::strstr(device.name, "Software") != nullptr ? 128 : 2048;
  std::vector<float> a(n * n), b(n * n), row(n);
  for (int i = 0; i < n * n; ++i)
    a[i] = static_cast<float>(i % 7), b[i] = static_cast<float>(i % 5);
  size_t bytes = a.size() * sizeof(float);
  float *da, *db, *dc;
  for (float** memory : {&da, &db, &dc}) Check(cudaMalloc(memory, bytes), "cudaMalloc");
  std::vector<double> times;
  for (int i = 0; i < 7; ++i) {
    auto begin = std::chrono::steady_clock::now();
    Check(cudaMemcpy(da, a.data(), bytes, cudaMemcpyHostToDevice), "upload");
    Check(cudaMemcpy(db, b.data(), bytes, cudaMemcpyHostToDevice), "upload");
    Multiply<<<dim3(n / kTile, n / kTile), dim3(kTile, kTile)>>>(da, db, dc, n);
    Check(cudaMemcpy(row.data(), dc, n * sizeof(float), cudaMemcpyDeviceToHost), "download");
    auto time = std::chrono::steady_clock::now() - begin;
    times.push_back(std::chrono::duration<double, std::milli>(time).count());
  }
  for (int column = 0; column < n; ++column) {
    double sum = 0;
    for (int k = 0; k < n; ++k) sum += double(a[k]) * b[k * n + column];
    if (std::fabs(sum - row[column]) <= 1e-3 * sum) continue;
    std::fprintf(stderr, "gemm_figures: element %d is %f, expected %f\n", column, row[column], sum);
    return 1;
  }
  std::sort(times.begin(), times.end());
  std::printf("%s %.3f ms\n", ("gemm_" + std::to_string(n)).c_str(), times[times.size() / 2]);
  return 0;
}
