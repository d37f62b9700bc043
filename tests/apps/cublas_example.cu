// A 6 x 5 column-major matrix, numbered 1 to 30 row by row. cuBLAS scales its second row from the
// third column on by 16 and its third column from the second row on by 12. Each line printed is
// one column.
#include "cublas_check.h"

constexpr int kRows = 6, kColumns = 5;

int main() {
  float matrix[kColumns][kRows];
  for (int column = 0; column < kColumns; ++column) {
    for (int row = 0; row < kRows; ++row) {
      matrix[column][row] = static_cast<float>(row * kColumns + column + 1);
    }
  }
  float* device;
  cublasHandle_t handle;
  CHECK(cudaMalloc(&device, sizeof matrix));
  CHECK_CUBLAS(cublasCreate(&handle));
  CHECK_CUBLAS(cublasSetMatrix(kRows, kColumns, sizeof(float), matrix, kRows, device, kRows));
  const float row_factor = 16.0f, column_factor = 12.0f;
  float* element = device + 2 * kRows + 1;
  CHECK_CUBLAS(cublasSscal(handle, kColumns - 2, &row_factor, element, kRows));
  CHECK_CUBLAS(cublasSscal(handle, kRows - 1, &column_factor, element, 1));
  CHECK_CUBLAS(cublasGetMatrix(kRows, kColumns, sizeof(float), device, kRows, matrix, kRows));
  CHECK_CUBLAS(cublasDestroy(handle));
  for (int column = 0; column < kColumns; ++column) {
    for (int row = 0; row < kRows; ++row) {
      std::printf("%s%g", row == 0 ? "" : " ", matrix[column][row]);
    }
    std::printf("\n");
  }
  CHECK(cudaFree(device));
  return Pass("cublas_example");
}
