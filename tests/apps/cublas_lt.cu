// cuBLASLt: a bf16 matrix product with a bias and ReLU in its epilogue, by the first algorithm that
// the heuristic gives, checked against the host.
#include <cublasLt.h>
#include <cuda_bf16.h>

#include <cmath>
#include <vector>

#include "cublas_check.h"

constexpr int kRows = 256, kColumns = 192, kInner = 128;
using Element = __nv_bfloat16;

static cublasLtMatrixLayout_t Layout(int rows, int columns) {
  cublasLtMatrixLayout_t layout;
  CHECK_CUBLAS(cublasLtMatrixLayoutCreate(&layout, CUDA_R_16BF, rows, columns, rows));
  return layout;
}

static Element* Upload(const std::vector<Element>& values) {
  Element* device;
  CHECK(cudaMalloc(&device, values.size() * sizeof(Element)));
  CHECK(cudaMemcpy(device, values.data(), values.size() * sizeof(Element), cudaMemcpyDefault));
  return device;
}

static std::vector<Element> Values(int count, int step) {
  std::vector<Element> values(count);
  for (int i = 0; i < count; ++i) {
    values[i] = __float2bfloat16(static_cast<float>(i * step % 17 - 8) / 8);
  }
  return values;
}

int main() {
  const std::vector<Element> a = Values(kRows * kInner, 5), b = Values(kInner * kColumns, 7),
                             bias = Values(kRows, 3);
  Element *device_a = Upload(a), *device_b = Upload(b), *device_bias = Upload(bias),
          *device_c = Upload(std::vector<Element>(kRows * kColumns));
  cublasLtHandle_t handle;
  CHECK_CUBLAS(cublasLtCreate(&handle));
  cublasLtMatmulDesc_t product;
  CHECK_CUBLAS(cublasLtMatmulDescCreate(&product, CUBLAS_COMPUTE_32F, CUDA_R_32F));
  const cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_RELU_BIAS;
  CHECK_CUBLAS(cublasLtMatmulDescSetAttribute(product, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue,
                                              sizeof epilogue));
  CHECK_CUBLAS(cublasLtMatmulDescSetAttribute(product, CUBLASLT_MATMUL_DESC_BIAS_POINTER,
                                              &device_bias, sizeof device_bias));
  auto layout_a = Layout(kRows, kInner), layout_b = Layout(kInner, kColumns),
       layout_c = Layout(kRows, kColumns);
  size_t workspace_size = 4 << 20;
  void* workspace;
  CHECK(cudaMalloc(&workspace, workspace_size));
  cublasLtMatmulPreference_t preference;
  CHECK_CUBLAS(cublasLtMatmulPreferenceCreate(&preference));
  CHECK_CUBLAS(cublasLtMatmulPreferenceSetAttribute(preference,
                                                    CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                                    &workspace_size, sizeof workspace_size));
  cublasLtMatmulHeuristicResult_t found{};
  int count = 0;
  CHECK_CUBLAS(cublasLtMatmulAlgoGetHeuristic(handle, product, layout_a, layout_b, layout_c,
                                              layout_c, preference, 1, &found, &count));
  EXPECT(count == 1, "%d algorithms", count);
  const float one = 1, zero = 0;
  CHECK_CUBLAS(cublasLtMatmul(handle, product, &one, device_a, layout_a, device_b, layout_b, &zero,
                              device_c, layout_c, device_c, layout_c, &found.algo, workspace,
                              workspace_size, nullptr));
  std::vector<Element> c(kRows * kColumns);
  CHECK(cudaMemcpy(c.data(), device_c, c.size() * sizeof(Element), cudaMemcpyDefault));
  double sum = 0;
  for (int column = 0; column < kColumns; ++column) {
    for (int row = 0; row < kRows; ++row) {
      float expected = __bfloat162float(bias[row]);
      for (int k = 0; k < kInner; ++k) {
        expected += __bfloat162float(a[k * kRows + row]) * __bfloat162float(b[column * kInner + k]);
      }
      expected = std::fmax(expected, 0.0f);
      const float got = __bfloat162float(c[column * kRows + row]);
      EXPECT(std::fabs(got - expected) <= 0.01f * expected + 0.01f, "%d, %d: %g instead of %g", row,
             column, got, expected);
      sum += got;
    }
  }
  std::printf("sum %.9g\n", sum);
  CHECK_CUBLAS(cublasLtDestroy(handle));
  return Pass("cublas_lt");
}
