// cuSPARSE: a matrix with three diagonals, in rows of non-zeros, times a vector.
#include <cusparse.h>

#include <cmath>

#include "library_check.h"

constexpr int kSize = 10000;

int main() {
  std::vector<int> starts{0}, columns;
  std::vector<float> values, x(kSize), y(kSize);
  for (int row = 0; row < kSize; ++row) {
    for (int column = row - 1; column <= row + 1; ++column) {
      if (column < 0 || column >= kSize) continue;
      columns.push_back(column);
      values.push_back(column == row ? 2.0f : -1.0f);
    }
    starts.push_back(static_cast<int>(columns.size()));
    x[row] = static_cast<float>(row % 100);
  }
  float *device_x = ToDevice(x), *device_y = ToDevice(y);
  cusparseHandle_t handle;
  cusparseSpMatDescr_t matrix;
  cusparseDnVecDescr_t in, out;
  CHECK_LIBRARY(cusparseCreate(&handle));
  CHECK_LIBRARY(cusparseCreateCsr(&matrix, kSize, kSize, values.size(), ToDevice(starts),
                                  ToDevice(columns), ToDevice(values), CUSPARSE_INDEX_32I,
                                  CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, CUDA_R_32F));
  CHECK_LIBRARY(cusparseCreateDnVec(&in, kSize, device_x, CUDA_R_32F));
  CHECK_LIBRARY(cusparseCreateDnVec(&out, kSize, device_y, CUDA_R_32F));
  const float one = 1, zero = 0;
  size_t size = 0;
  void* buffer;
  CHECK_LIBRARY(cusparseSpMV_bufferSize(handle, CUSPARSE_OPERATION_NON_TRANSPOSE, &one, matrix, in,
                                        &zero, out, CUDA_R_32F, CUSPARSE_SPMV_CSR_ALG2, &size));
  CHECK(cudaMalloc(&buffer, size + 1));
  CHECK_LIBRARY(cusparseSpMV(handle, CUSPARSE_OPERATION_NON_TRANSPOSE, &one, matrix, in, &zero, out,
                             CUDA_R_32F, CUSPARSE_SPMV_CSR_ALG2, buffer));
  y = ToHost(device_y, kSize);
  for (int row = 0; row < kSize; ++row) {
    const float expected =
        2 * x[row] - (row > 0 ? x[row - 1] : 0) - (row + 1 < kSize ? x[row + 1] : 0);
    EXPECT(y[row] == expected, "row %d: %g instead of %g", row, y[row], expected);
  }
  PrintHash("product", y);
  CHECK_LIBRARY(cusparseDestroySpMat(matrix));
  CHECK_LIBRARY(cusparseDestroy(handle));
  return Pass("cusparse_product");
}
