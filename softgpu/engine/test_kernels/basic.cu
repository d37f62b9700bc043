// Kernels of the first samples that people run.

__global__ void vector_add(const float* a, const float* b, float* c, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
}

__global__ void matmul(const float* a, const float* b, float* c, int n) {
  __shared__ float tile_a[16][16], tile_b[16][16];
  int row = blockIdx.y * 16 + threadIdx.y;
  int column = blockIdx.x * 16 + threadIdx.x;
  float sum = 0;
  for (int t = 0; t < n / 16; ++t) {
    tile_a[threadIdx.y][threadIdx.x] = a[row * n + t * 16 + threadIdx.x];
    tile_b[threadIdx.y][threadIdx.x] = b[(t * 16 + threadIdx.y) * n + column];
    __syncthreads();
    for (int k = 0; k < 16; ++k) sum += tile_a[threadIdx.y][k] * tile_b[k][threadIdx.x];
    __syncthreads();
  }
  c[row * n + column] = sum;
}

__global__ void transpose(const int* in, int* out, int width, int height) {
  __shared__ int tile[32][33];
  int x = blockIdx.x * 32 + threadIdx.x;
  int y = blockIdx.y * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8) {
    if (x < width && y + j < height) tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * width + x];
  }
  __syncthreads();
  x = blockIdx.y * 32 + threadIdx.x;
  y = blockIdx.x * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8) {
    if (x < height && y + j < width) out[(y + j) * height + x] = tile[threadIdx.x][threadIdx.y + j];
  }
}

__global__ void histogram(const unsigned char* data, unsigned* bins, int n) {
  __shared__ unsigned local[256];
  for (int i = threadIdx.x; i < 256; i += blockDim.x) local[i] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    atomicAdd(&local[data[i]], 1);
  }
  __syncthreads();
  for (int i = threadIdx.x; i < 256; i += blockDim.x) atomicAdd(&bins[i], local[i]);
}

__global__ void shuffle_sum(const int* in, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int value = i < n ? in[i] : 0;
  for (int offset = 16; offset > 0; offset /= 2) {
    value += __shfl_down_sync(0xffffffff, value, offset);
  }
  if ((threadIdx.x & 31) == 0) atomicAdd(out, value);
}

__global__ void tree_sum(const int* in, int* out, int n) {
  extern __shared__ int partial[];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  partial[threadIdx.x] = i < n ? in[i] : 0;
  __syncthreads();
  for (int s = blockDim.x / 2; s > 0; s /= 2) {
    if (threadIdx.x < s) partial[threadIdx.x] += partial[threadIdx.x + s];
    __syncthreads();
  }
  if (threadIdx.x == 0) out[blockIdx.x] = partial[0];
}

// Inclusive scan of one block: within warps by shuffles, then across warps.
__global__ void scan(const int* in, int* out) {
  __shared__ int totals[32];
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  int value = in[threadIdx.x];
  for (int d = 1; d < 32; d *= 2) {
    int other = __shfl_up_sync(0xffffffff, value, d);
    if (lane >= d) value += other;
  }
  if (lane == 31) totals[warp] = value;
  __syncthreads();
  if (warp == 0) {
    int total = lane < blockDim.x / 32 ? totals[lane] : 0;
    for (int d = 1; d < 32; d *= 2) {
      int other = __shfl_up_sync(0xffffffff, total, d);
      if (lane >= d) total += other;
    }
    totals[lane] = total;
  }
  __syncthreads();
  out[threadIdx.x] = value + (warp > 0 ? totals[warp - 1] : 0);
}

__device__ float normal(float d) {
  float k = 1.0f / (1.0f + 0.2316419f * fabsf(d));
  float c = 0.39894228f * __expf(-0.5f * d * d) *
            (k * (0.31938153f + k * (-0.356563782f +
                                     k * (1.781477937f + k * (-1.821255978f + k * 1.330274429f)))));
  return d > 0 ? 1.0f - c : c;
}

__global__ void black_scholes(float* call, float* put, const float* price, const float* strike,
                              const float* years, float rate, float volatility, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float root = sqrtf(years[i]);
  float d1 = (logf(price[i] / strike[i]) + (rate + 0.5f * volatility * volatility) * years[i]) /
             (volatility * root);
  float d2 = d1 - volatility * root;
  float discount = expf(-rate * years[i]);
  call[i] = price[i] * normal(d1) - strike[i] * discount * normal(d2);
  put[i] = strike[i] * discount * (1.0f - normal(d2)) - price[i] * (1.0f - normal(d1));
}

__global__ void nbody(const float4* bodies, float4* forces, int n) {
  __shared__ float4 tile[64];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float4 me = bodies[i];
  float3 sum = {0, 0, 0};
  for (int t = 0; t < n / 64; ++t) {
    tile[threadIdx.x] = bodies[t * 64 + threadIdx.x];
    __syncthreads();
#pragma unroll 16
    for (int j = 0; j < 64; ++j) {
      float4 other = tile[j];
      float x = other.x - me.x, y = other.y - me.y, z = other.z - me.z;
      float inverse = rsqrtf(x * x + y * y + z * z + 0.01f);
      float s = other.w * inverse * inverse * inverse;
      sum.x += s * x;
      sum.y += s * y;
      sum.z += s * z;
    }
    __syncthreads();
  }
  forces[i] = make_float4(sum.x, sum.y, sum.z, 0);
}

// Addresses of shared memory have 32 bits: base and offset wrap around together.
__global__ void shared_from_below(int* out) {
  __shared__ int tile[32];
  tile[threadIdx.x] = static_cast<int>(threadIdx.x) * 3;
  __syncthreads();
  auto below = static_cast<unsigned>(__cvta_generic_to_shared(tile + threadIdx.x)) - 4096;
  asm volatile("ld.shared.u32 %0, [%1+4096];" : "=r"(out[threadIdx.x]) : "r"(below) : "memory");
}

// Where each thread stands in a block that is no multiple of a warp in any direction.
__global__ void coordinates(int* out) {
  int thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  out[thread] = threadIdx.x + 100 * threadIdx.y + 10000 * threadIdx.z;
}
