// What probes cost: attention, a product of matrices and an addition of vectors, each a kernel of
// its own with PTX, launched many times. Prints "name value unit" lines, and a checksum of what was
// computed, which is the same with probes.
//
//   probe_load [SCALE]    default 1; a software device has a small one by itself
#include <cuda_runtime.h>

#include <cstring>
#include <vector>

#include "figures.h"

namespace {

using longwire::bench::Clock;
using longwire::bench::Microseconds;

constexpr int kTile = 64, kDepth = 16, kHead = 64, kKeys = 32;

void Check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "probe_load: %s: %s\n", what, cudaGetErrorString(error));
  std::exit(1);
}

// c = a b, of n * n; a block of 256 threads computes a tile of 64 * 64, each thread 4 * 4.
__global__ void __launch_bounds__(256) Matmul(const float* a, const float* b, float* c, int n) {
  __shared__ float left[kDepth][kTile], right[kDepth][kTile];
  const int row = blockIdx.y * kTile, column = blockIdx.x * kTile;
  const int y = threadIdx.x / 16 * 4, x = threadIdx.x % 16 * 4;
  float sum[4][4] = {};
  for (int k = 0; k < n; k += kDepth) {
    for (int i = threadIdx.x; i < kTile * kDepth; i += blockDim.x) {
      left[i % kDepth][i / kDepth] = a[(row + i / kDepth) * n + k + i % kDepth];
      right[i / kTile][i % kTile] = b[(k + i / kTile) * n + column + i % kTile];
    }
    __syncthreads();
    for (int depth = 0; depth < kDepth; ++depth) {
      for (int i = 0; i < 4; ++i) {
        for (int j = 0; j < 4; ++j) sum[i][j] += left[depth][y + i] * right[depth][x + j];
      }
    }
    __syncthreads();
  }
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 4; ++j) c[(row + y + i) * n + column + x + j] = sum[i][j];
  }
}

// A head of attention with a running softmax; a thread has a query, a block's keys and values come
// through shared memory. One head for each blockIdx.y.
__global__ void __launch_bounds__(128)
    Attention(const float* q, const float* k, const float* v, float* out, int length) {
  __shared__ float keys[kKeys][kHead], values[kKeys][kHead];
  const size_t head = static_cast<size_t>(blockIdx.y) * length * kHead;
  const int query = blockIdx.x * blockDim.x + threadIdx.x;
  float mine[kHead], sum[kHead] = {}, most = -1e30f, total = 0.0f;
  for (int i = 0; i < kHead; ++i) mine[i] = q[head + query * kHead + i] * 0.125f;
  for (int first = 0; first < length; first += kKeys) {
    for (int i = threadIdx.x; i < kKeys * kHead; i += blockDim.x) {
      keys[i / kHead][i % kHead] = k[head + first * kHead + i];
      values[i / kHead][i % kHead] = v[head + first * kHead + i];
    }
    __syncthreads();
    for (int key = 0; key < kKeys; ++key) {
      float score = 0.0f;
      for (int i = 0; i < kHead; ++i) score += mine[i] * keys[key][i];
      const float larger = fmaxf(most, score);
      const float scale = __expf(most - larger), weight = __expf(score - larger);
      total = total * scale + weight;
      for (int i = 0; i < kHead; ++i) sum[i] = sum[i] * scale + weight * values[key][i];
      most = larger;
    }
    __syncthreads();
  }
  for (int i = 0; i < kHead; ++i) out[head + query * kHead + i] = sum[i] / total;
}

__global__ void Add(const float* a, const float* b, float* c, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
}

float* Filled(size_t count, unsigned seed) {
  std::vector<float> values(count);
  for (float& value : values) {
    seed = seed * 1664525u + 1013904223u;
    value = static_cast<float>(seed >> 8) / static_cast<float>(1 << 24) - 0.5f;
  }
  float* memory = nullptr;
  Check(cudaMalloc(&memory, count * sizeof(float)), "cudaMalloc");
  Check(cudaMemcpy(memory, values.data(), count * sizeof(float), cudaMemcpyHostToDevice), "a copy");
  return memory;
}

// FNV-1a over the bits.
unsigned long long SumOf(const float* memory, size_t count) {
  std::vector<unsigned> words(count);
  Check(cudaMemcpy(words.data(), memory, count * sizeof(float), cudaMemcpyDeviceToHost), "a copy");
  unsigned long long hash = 14695981039346656037ull;
  for (const unsigned word : words) hash = (hash ^ word) * 1099511628211ull;
  return hash;
}

// The median time of a launch, of batches that are waited for.
template <class Launch>
void Measure(const char* name, int launches, int batches, const float* result, size_t count,
             Launch launch) {
  std::vector<double> times;
  for (int batch = 0; batch <= batches; ++batch) {  // the first loads the code
    const auto begin = Clock::now();
    for (int i = 0; i < launches; ++i) launch();
    Check(cudaDeviceSynchronize(), name);
    if (batch > 0) times.push_back(Microseconds(begin, Clock::now()) / launches);
  }
  std::printf("%s %.3f us\n%s_result %llu hash\n", name, longwire::bench::Median(times), name,
              SumOf(result, count));
}

}  // namespace

int main(int count, char** arguments) {
  cudaDeviceProp about{};
  Check(cudaGetDeviceProperties(&about, 0), "cudaGetDeviceProperties");
  const bool software = std::strstr(about.name, "Software") != nullptr;
  const int scale = count > 1 ? std::atoi(arguments[1]) : 1;
  const int n = software ? 64 : 2048 * scale, length = software ? 128 : 4096;
  const int heads = software ? 1 : 16 * scale, elements = software ? 4096 : (64 << 20) * scale;
  const int launches = software ? 1 : 10, batches = software ? 2 : 9;
  const size_t square = static_cast<size_t>(n) * n;
  const size_t all = static_cast<size_t>(length) * kHead * heads;
  float *a = Filled(square, 1), *b = Filled(square, 2), *c = Filled(square, 3);
  Measure("matmul", launches, batches, c, square,
          [&] { Matmul<<<dim3(n / kTile, n / kTile), 256>>>(a, b, c, n); });
  float *q = Filled(all, 4), *k = Filled(all, 5), *v = Filled(all, 6), *out = Filled(all, 7);
  Measure("attention", launches, batches, out, all,
          [&] { Attention<<<dim3(length / 128, heads), 128>>>(q, k, v, out, length); });
  float *x = Filled(elements, 8), *y = Filled(elements, 9), *z = Filled(elements, 10);
  Measure("vector_add", launches * 5, batches, z, static_cast<size_t>(elements),
          [&] { Add<<<(elements + 255) / 256, 256>>>(x, y, z, elements); });
  return 0;
}
