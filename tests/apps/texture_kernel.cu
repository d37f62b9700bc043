// A texture object over a two-dimensional array, with linear filtering and clamped borders, and a
// surface object written by a kernel; both destroyed behind launches that have yet to run. For
// devices with texture units.
#include <vector>

#include "check.h"

constexpr int kWidth = 64, kHeight = 32;

__global__ void Sample(cudaTextureObject_t texture, float* output) {
  const int x = threadIdx.x, y = blockIdx.x;
  // A quarter of the way to the next element; filtering has 8 bits of fraction.
  output[y * kWidth + x] = tex2D<float>(texture, x + 0.75f, y + 0.5f);
}

__global__ void Increment(cudaSurfaceObject_t surface) {
  const int x = threadIdx.x, y = blockIdx.x;
  float value;
  surf2Dread(&value, surface, x * static_cast<int>(sizeof(float)), y);
  surf2Dwrite(value + 1.0f, surface, x * static_cast<int>(sizeof(float)), y);
}

__global__ void Spend(long long nanoseconds) {
  long long start, now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(start));
  do {
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  } while (now - start < nanoseconds);
}

int main() {
  std::vector<float> host(kWidth * kHeight), result(kWidth * kHeight);
  for (int i = 0; i < kWidth * kHeight; ++i) host[i] = static_cast<float>((i * 16) % 1024);
  const cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
  cudaArray_t array;
  CHECK(cudaMallocArray(&array, &format, kWidth, kHeight, cudaArraySurfaceLoadStore));
  CHECK(cudaMemcpy2DToArray(array, 0, 0, host.data(), kWidth * sizeof(float),
                            kWidth * sizeof(float), kHeight, cudaMemcpyHostToDevice));
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = array;
  cudaTextureDesc description = {};
  description.addressMode[0] = description.addressMode[1] = cudaAddressModeClamp;
  description.filterMode = cudaFilterModeLinear;
  description.readMode = cudaReadModeElementType;
  cudaTextureObject_t texture;
  CHECK(cudaCreateTextureObject(&texture, &resource, &description, nullptr));
  cudaSurfaceObject_t surface;
  CHECK(cudaCreateSurfaceObject(&surface, &resource));
  float* output;
  CHECK(cudaMalloc(&output, host.size() * sizeof(float)));
  Sample<<<kHeight, kWidth>>>(texture, output);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(result.data(), output, host.size() * sizeof(float), cudaMemcpyDeviceToHost));
  for (int y = 0; y < kHeight; ++y) {
    for (int x = 0; x < kWidth; ++x) {
      const float here = host[y * kWidth + x];
      const float next = host[y * kWidth + (x + 1 < kWidth ? x + 1 : x)];
      const float expected = here + 0.25f * (next - here);
      EXPECT(result[y * kWidth + x] == expected, "(%d,%d) is %g, not %g", x, y,
             result[y * kWidth + x], expected);
    }
  }
  Increment<<<kHeight, kWidth>>>(surface);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy2DFromArray(result.data(), kWidth * sizeof(float), array, 0, 0,
                              kWidth * sizeof(float), kHeight, cudaMemcpyDeviceToHost));
  for (int i = 0; i < kWidth * kHeight; ++i) {
    EXPECT(result[i] == host[i] + 1.0f, "element %d is %g after the surface write", i, result[i]);
  }
  Spend<<<1, 1>>>(50'000'000);
  Increment<<<kHeight, kWidth>>>(surface);
  Sample<<<kHeight, kWidth>>>(texture, output);
  CHECK(cudaGetLastError());
  CHECK(cudaDestroyTextureObject(texture));
  CHECK(cudaDestroySurfaceObject(surface));
  CHECK(cudaMemcpy(result.data(), output, host.size() * sizeof(float), cudaMemcpyDeviceToHost));
  for (int y = 0; y < kHeight; ++y) {
    const float last = host[y * kWidth + kWidth - 1] + 2.0f;  // clamped: nothing to blend with
    EXPECT(result[y * kWidth + kWidth - 1] == last, "row %d ends in %g, not %g", y,
           result[y * kWidth + kWidth - 1], last);
  }
  CHECK(cudaFreeArray(array));
  CHECK(cudaFree(output));
  return Pass("texture_kernel");
}
