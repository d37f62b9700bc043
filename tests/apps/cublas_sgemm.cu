// SGEMM of whole numbers, exact in float, plain and strided-batched, against the host's product.
#include <vector>

#include "cublas_check.h"

constexpr int kM = 96, kN = 80, kK = 64, kBatch = 3;

int main() {
  std::vector<float> a(kM * kK * kBatch), b(kK * kN * kBatch), c(kM * kN * kBatch);
  for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(static_cast<int>(i % 11) - 5);
  for (size_t i = 0; i < b.size(); ++i) b[i] = static_cast<float>(static_cast<int>(i % 7) - 3);
  float *device_a, *device_b, *device_c;
  CHECK(cudaMalloc(&device_a, a.size() * sizeof(float)));
  CHECK(cudaMalloc(&device_b, b.size() * sizeof(float)));
  CHECK(cudaMalloc(&device_c, c.size() * sizeof(float)));
  CHECK(cudaMemcpy(device_a, a.data(), a.size() * sizeof(float), cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(device_b, b.data(), b.size() * sizeof(float), cudaMemcpyHostToDevice));
  cublasHandle_t handle;
  cudaStream_t stream;
  CHECK(cudaStreamCreate(&stream));
  CHECK_CUBLAS(cublasCreate(&handle));
  CHECK_CUBLAS(cublasSetStream(handle, stream));
  const float one = 1.0f, zero = 0.0f;
  for (int pass = 0; pass < 2; ++pass) {
    const int batch = pass == 0 ? 1 : kBatch;
    CHECK(cudaMemsetAsync(device_c, 0xff, c.size() * sizeof(float), stream));
    if (pass == 0) {
      CHECK_CUBLAS(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, kM, kN, kK, &one, device_a, kM,
                               device_b, kK, &zero, device_c, kM));
    } else {
      CHECK_CUBLAS(cublasSgemmStridedBatched(handle, CUBLAS_OP_N, CUBLAS_OP_N, kM, kN, kK, &one,
                                             device_a, kM, kM * kK, device_b, kK, kK * kN, &zero,
                                             device_c, kM, kM * kN, kBatch));
    }
    CHECK(cudaMemcpyAsync(c.data(), device_c, c.size() * sizeof(float), cudaMemcpyDeviceToHost,
                          stream));
    CHECK(cudaStreamSynchronize(stream));
    for (int i = 0; i < kM * kN * batch; ++i) {
      const int matrix = i / (kM * kN), row = i % kM, column = i / kM % kN;
      float sum = 0;
      for (int k = 0; k < kK; ++k) {
        sum += a[matrix * kM * kK + k * kM + row] * b[matrix * kK * kN + column * kK + k];
      }
      EXPECT(c[i] == sum, "pass %d, matrix %d, (%d,%d) is %g, not %g", pass, matrix, row, column,
             c[i], sum);
    }
  }
  CHECK_CUBLAS(cublasDestroy(handle));
  return Pass("cublas_sgemm");
}
