// Adds two vectors of several awkward lengths and compares every element with the host's sum.
#include <vector>

#include "check.h"

__global__ void Add(const float* a, const float* b, float* sum, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) sum[i] = a[i] + b[i];
}

static void AddOnDevice(int count) {
  std::vector<float> a(count), b(count), sum(count, -1.0f);
  for (int i = 0; i < count; ++i) {
    a[i] = 0.25f * i;
    b[i] = 1.0f / (i + 1);
  }
  const size_t bytes = count * sizeof(float);
  float *device_a, *device_b, *device_sum;
  CHECK(cudaMalloc(&device_a, bytes));
  CHECK(cudaMalloc(&device_b, bytes));
  CHECK(cudaMalloc(&device_sum, bytes));
  CHECK(cudaMemcpy(device_a, a.data(), bytes, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(device_b, b.data(), bytes, cudaMemcpyHostToDevice));
  Add<<<(count + 127) / 128, 128>>>(device_a, device_b, device_sum, count);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(sum.data(), device_sum, bytes, cudaMemcpyDeviceToHost));
  for (int i = 0; i < count; ++i) {
    EXPECT(sum[i] == a[i] + b[i], "element %d of %d is %g, not %g", i, count, sum[i], a[i] + b[i]);
  }
  CHECK(cudaFree(device_a));
  CHECK(cudaFree(device_b));
  CHECK(cudaFree(device_sum));
}

int main() {
  for (int count : {1, 31, 128, 129, 1000, 65537, 300000}) AddOnDevice(count);
  return Pass("vector_add");
}
