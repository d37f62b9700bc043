// cuSOLVER: a system of equations by LU with pivots, and the eigenvalues of a symmetric matrix.
#include <cusolverDn.h>

#include <cmath>

#include "library_check.h"

constexpr int kSize = 300;

static std::vector<double> SymmetricMatrix() {
  std::vector<double> matrix(kSize * kSize);
  for (int row = 0; row < kSize; ++row) {
    for (int column = 0; column < kSize; ++column) {
      matrix[row * kSize + column] = row == column ? kSize : 1.0 / (1 + std::abs(row - column));
    }
  }
  return matrix;
}

static void Solve(cusolverDnHandle_t handle, const std::vector<double>& matrix) {
  double *a = ToDevice(matrix), *b = ToDevice(std::vector<double>(kSize, 1.0)), *work;
  int *pivots, *info, size = 0;
  CHECK(cudaMalloc(&pivots, kSize * sizeof(int)));
  CHECK(cudaMalloc(&info, sizeof(int)));
  CHECK_LIBRARY(cusolverDnDgetrf_bufferSize(handle, kSize, kSize, a, kSize, &size));
  CHECK(cudaMalloc(&work, size * sizeof(double)));
  CHECK_LIBRARY(cusolverDnDgetrf(handle, kSize, kSize, a, kSize, work, pivots, info));
  CHECK_LIBRARY(cusolverDnDgetrs(handle, CUBLAS_OP_N, kSize, 1, a, kSize, pivots, b, kSize, info));
  EXPECT(ToHost(info, 1)[0] == 0, "it says %d", ToHost(info, 1)[0]);
  const std::vector<double> x = ToHost(b, kSize);
  for (int row = 0; row < kSize; ++row) {
    double sum = 0;
    for (int column = 0; column < kSize; ++column) sum += matrix[row * kSize + column] * x[column];
    EXPECT(std::fabs(sum - 1) < 1e-10, "row %d gives %g", row, sum);
  }
  PrintHash("solution", x);
}

static void Eigenvalues(cusolverDnHandle_t handle, const std::vector<double>& matrix) {
  double *a = ToDevice(matrix), *values, *work;
  int *info, size = 0;
  CHECK(cudaMalloc(&values, kSize * sizeof(double)));
  CHECK(cudaMalloc(&info, sizeof(int)));
  constexpr auto kWhat = CUSOLVER_EIG_MODE_NOVECTOR;
  constexpr auto kHalf = CUBLAS_FILL_MODE_LOWER;
  CHECK_LIBRARY(cusolverDnDsyevd_bufferSize(handle, kWhat, kHalf, kSize, a, kSize, values, &size));
  CHECK(cudaMalloc(&work, size * sizeof(double)));
  CHECK_LIBRARY(cusolverDnDsyevd(handle, kWhat, kHalf, kSize, a, kSize, values, work, size, info));
  EXPECT(ToHost(info, 1)[0] == 0, "it says %d", ToHost(info, 1)[0]);
  const std::vector<double> found = ToHost(values, kSize);
  double sum = 0;
  for (double value : found) sum += value;
  EXPECT(std::fabs(sum - kSize * kSize) < 1e-6, "the trace is %g", sum);
  PrintHash("eigenvalues", found);
}

int main() {
  cusolverDnHandle_t handle;
  CHECK_LIBRARY(cusolverDnCreate(&handle));
  const std::vector<double> matrix = SymmetricMatrix();
  Solve(handle, matrix);
  Eigenvalues(handle, matrix);
  CHECK_LIBRARY(cusolverDnDestroy(handle));
  return Pass("cusolver_system");
}
