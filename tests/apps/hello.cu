// The demonstration: adds two vectors on whatever device is there and says what came out.
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

__global__ void Add(const float* a, const float* b, float* sum, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) sum[i] = a[i] + b[i];
}

int main() {
  const int count = 50000;
  const size_t bytes = count * sizeof(float);
  cudaDeviceProp properties;
  cudaError_t error = cudaGetDeviceProperties(&properties, 0);
  if (error != cudaSuccess) {
    std::printf("No CUDA device: %s\n", cudaGetErrorString(error));
    return 1;
  }
  std::printf("Device 0: %s, compute capability %d.%d\n", properties.name, properties.major,
              properties.minor);

  std::vector<float> a(count), b(count), sum(count);
  for (int i = 0; i < count; ++i) {
    a[i] = 0.5f * i;
    b[i] = 1.5f * i;
  }
  float *device_a, *device_b, *device_sum;
  cudaMalloc(&device_a, bytes);
  cudaMalloc(&device_b, bytes);
  cudaMalloc(&device_sum, bytes);
  cudaMemcpy(device_a, a.data(), bytes, cudaMemcpyHostToDevice);
  cudaMemcpy(device_b, b.data(), bytes, cudaMemcpyHostToDevice);
  Add<<<(count + 255) / 256, 256>>>(device_a, device_b, device_sum, count);
  error = cudaMemcpy(sum.data(), device_sum, bytes, cudaMemcpyDeviceToHost);
  if (error != cudaSuccess) {
    std::printf("The addition failed: %s\n", cudaGetErrorString(error));
    return 1;
  }

  int wrong = 0;
  for (int i = 0; i < count; ++i) wrong += sum[i] != 2.0f * i;
  std::printf("Added %d elements: first %.1f, last %.1f, %d wrong\n", count, sum[0], sum[count - 1],
              wrong);
  cudaFree(device_a);
  cudaFree(device_b);
  cudaFree(device_sum);
  if (wrong == 0) std::printf("PASS hello\n");
  return wrong == 0 ? 0 : 1;
}
