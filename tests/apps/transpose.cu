// Transposes a matrix whose sides are no multiples of the tile, through padded shared memory.
#include <vector>

#include "check.h"

constexpr int kTile = 32, kLines = 8;

__global__ void Transpose(const int* input, int* output, int rows, int columns) {
  __shared__ int tile[kTile][kTile + 1];
  int x = blockIdx.x * kTile + threadIdx.x;
  int y = blockIdx.y * kTile + threadIdx.y;
  for (int line = 0; line < kTile; line += kLines) {
    if (x < columns && y + line < rows) {
      tile[threadIdx.y + line][threadIdx.x] = input[(y + line) * columns + x];
    }
  }
  __syncthreads();
  x = blockIdx.y * kTile + threadIdx.x;
  y = blockIdx.x * kTile + threadIdx.y;
  for (int line = 0; line < kTile; line += kLines) {
    if (x < rows && y + line < columns) {
      output[(y + line) * rows + x] = tile[threadIdx.x][threadIdx.y + line];
    }
  }
}

int main() {
  const int rows = 213, columns = 331;
  std::vector<int> input(rows * columns), output(rows * columns);
  for (size_t i = 0; i < input.size(); ++i) input[i] = static_cast<int>(i * 2654435761u);
  const size_t bytes = input.size() * sizeof(int);
  int *device_input, *device_output;
  CHECK(cudaMalloc(&device_input, bytes));
  CHECK(cudaMalloc(&device_output, bytes));
  CHECK(cudaMemcpy(device_input, input.data(), bytes, cudaMemcpyHostToDevice));
  CHECK(cudaMemset(device_output, 0xff, bytes));
  const dim3 grid((columns + kTile - 1) / kTile, (rows + kTile - 1) / kTile);
  Transpose<<<grid, dim3(kTile, kLines)>>>(device_input, device_output, rows, columns);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(output.data(), device_output, bytes, cudaMemcpyDeviceToHost));
  for (int row = 0; row < rows; ++row) {
    for (int column = 0; column < columns; ++column) {
      EXPECT(output[column * rows + row] == input[row * columns + column], "(%d,%d) is %d, not %d",
             column, row, output[column * rows + row], input[row * columns + column]);
    }
  }
  CHECK(cudaFree(device_input));
  CHECK(cudaFree(device_output));
  return Pass("transpose");
}
