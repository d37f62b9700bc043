// Pitched memory: two-dimensional copies and memsets of parts, in every direction, and a 3D copy.
#include <vector>

#include "check.h"

constexpr int kWidth = 75, kHeight = 40;

__global__ void Increment(int* values, size_t pitch) {
  int* row = reinterpret_cast<int*>(reinterpret_cast<char*>(values) + blockIdx.x * pitch);
  if (threadIdx.x < kWidth) row[threadIdx.x] += 1;
}

static void CopyCube() {
  const cudaExtent extent = make_cudaExtent(10 * sizeof(int), 6, 4);
  cudaPitchedPtr cube;
  CHECK(cudaMalloc3D(&cube, extent));
  std::vector<int> source(240), target(240, -1);
  for (int i = 0; i < 240; ++i) source[i] = i * i;
  cudaMemcpy3DParms copy = {};
  copy.srcPtr = make_cudaPitchedPtr(source.data(), 10 * sizeof(int), 10, 6);
  copy.dstPtr = cube;
  copy.extent = extent;
  copy.kind = cudaMemcpyHostToDevice;
  CHECK(cudaMemcpy3D(&copy));
  copy.srcPtr = cube;
  copy.dstPtr = make_cudaPitchedPtr(target.data(), 10 * sizeof(int), 10, 6);
  copy.kind = cudaMemcpyDeviceToHost;
  CHECK(cudaMemcpy3D(&copy));
  EXPECT(source == target, "the cube came back changed");
  CHECK(cudaFree(cube.ptr));
}

int main() {
  const size_t row_bytes = kWidth * sizeof(int);
  int *first, *second;
  size_t pitch = 0, second_pitch = 0;
  CHECK(cudaMallocPitch(reinterpret_cast<void**>(&first), &pitch, row_bytes, kHeight));
  CHECK(cudaMallocPitch(reinterpret_cast<void**>(&second), &second_pitch, row_bytes, kHeight));
  EXPECT(pitch >= row_bytes && pitch % 32 == 0, "pitch %zu", pitch);
  std::vector<int> host(kWidth * kHeight), result(kHeight * 100, -7);
  for (size_t i = 0; i < host.size(); ++i) host[i] = static_cast<int>(i) * 3;
  cudaStream_t stream;
  CHECK(cudaStreamCreate(&stream));

  CHECK(cudaMemcpy2D(first, pitch, host.data(), row_bytes, row_bytes, kHeight,
                     cudaMemcpyHostToDevice));
  Increment<<<kHeight, 128, 0, stream>>>(first, pitch);
  CHECK(cudaMemset2DAsync(second, second_pitch, 0x11, row_bytes, kHeight, stream));
  // Columns 5 to 24 of rows 3 to 12.
  CHECK(cudaMemcpy2DAsync(reinterpret_cast<char*>(second) + 3 * second_pitch + 5 * sizeof(int),
                          second_pitch,
                          reinterpret_cast<char*>(first) + 3 * pitch + 5 * sizeof(int), pitch,
                          20 * sizeof(int), 10, cudaMemcpyDeviceToDevice, stream));
  CHECK(cudaMemcpy2DAsync(result.data(), 100 * sizeof(int), second, second_pitch, row_bytes,
                          kHeight, cudaMemcpyDeviceToHost, stream));
  CHECK(cudaStreamSynchronize(stream));
  for (int row = 0; row < kHeight; ++row) {
    for (int column = 0; column < 100; ++column) {
      const bool copied = row >= 3 && row < 13 && column >= 5 && column < 25;
      int expected = copied ? host[row * kWidth + column] + 1 : 0x11111111;
      if (column >= kWidth) expected = -7;
      EXPECT(result[row * 100 + column] == expected, "(%d,%d) is %d, not %d", row, column,
             result[row * 100 + column], expected);
    }
  }
  CHECK(cudaMemcpy2D(host.data(), row_bytes, result.data(), 100 * sizeof(int), row_bytes, kHeight,
                     cudaMemcpyHostToHost));
  EXPECT(host[4 * kWidth + 6] == result[4 * 100 + 6], "the copy between host arrays is wrong");
  CHECK(cudaFree(first));
  CHECK(cudaFree(second));
  CopyCube();
  return Pass("copy_2d");
}
