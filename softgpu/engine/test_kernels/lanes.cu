// Divergence, early exits, vectors, local memory and what the lanes of a warp do apart.
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/reduce.h>
#include <cuda_fp16.h>

#include <cuda/atomic>

namespace cg = cooperative_groups;

// Collatz lengths: every lane leaves its loop at another time, some leave the kernel in it.
__global__ void collatz(const unsigned* in, int* out, int limit) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned long long x = in[i];
  int steps = 0;
  while (x != 1) {
    if (x % 2 == 0) {
      x /= 2;
    } else {
      for (int k = 0; k < 3; ++k) {
        if (k == 1) continue;
        x = k == 0 ? 3 * x : x + 1;
      }
    }
    if (++steps > limit) return;
  }
  out[i] = steps;
}

// Threads that have left do not count at the barriers of the others.
__global__ void leave_early(int* out) {
  __shared__ int sum;
  if (threadIdx.x == 0) sum = 0;
  __syncthreads();
  if (threadIdx.x % 3 == 1) return;
  atomicAdd(&sum, 1);
  __syncthreads();
  if (threadIdx.x >= 64) return;
  out[threadIdx.x] = sum;
  __syncthreads();
  out[threadIdx.x] += 1000;
}

// Halves of a warp exchange values through a warp barrier that they reach at different places.
__global__ void warp_halves(int* out) {
  __shared__ volatile int box[32];
  int lane = threadIdx.x;
  if (lane < 16) {
    box[lane] = lane + 100;
    __syncwarp();
    out[lane] = box[lane + 16];
  } else {
    box[lane] = lane + 200;
    __syncwarp();
    out[lane] = box[lane - 16];
  }
}

__global__ void vectors(const float4* in, float4* out, const short2* small, short2* small_out,
                        const double2* wide, double2* wide_out) {
  int i = threadIdx.x;
  float4 v = in[i];
  out[i] = make_float4(v.w, v.z + 1, v.y, v.x);
  short2 s = small[i];
  small_out[i] = make_short2(s.y, s.x - 1);
  double2 d = wide[i];
  wide_out[i] = make_double2(d.y, d.x * 2);
}

// Insertion sort in local memory, with indices that only the run knows.
__global__ void sort_locally(const unsigned char* in, unsigned char* out) {
  unsigned char values[24];
  memcpy(values, in + threadIdx.x * 24, 24);
  for (int i = 1; i < 24; ++i) {
    for (int j = i; j > 0 && values[j - 1] > values[j]; --j) {
      unsigned char t = values[j];
      values[j] = values[j - 1];
      values[j - 1] = t;
    }
  }
  memcpy(out + threadIdx.x * 24, values, 24);
}

__global__ void copy_async(const int* in, int* out) {
  __shared__ int tile[256];
  cg::thread_block block = cg::this_thread_block();
  cg::memcpy_async(block, tile, in, sizeof(int) * 256);
  cg::wait(block);
  out[threadIdx.x] = tile[255 - threadIdx.x];
}

__global__ void half_atomics(__half2* pair, __half* one, double* d, float* f) {
  atomicAdd(pair, __floats2half2_rn(1.0f, 0.5f));
  atomicAdd(one, __float2half(0.25f));
  atomicAdd_system(d, 1.5);
  atomicAdd_block(f, 2.0f);
}

__global__ void standard_atomics(int* value, int* out) {
  cuda::atomic_ref<int, cuda::thread_scope_device> a(*value);
  int mine = a.fetch_add(1, cuda::memory_order_acq_rel);
  while (a.load(cuda::memory_order_acquire) < static_cast<int>(gridDim.x * blockDim.x)) {
  }
  out[blockIdx.x * blockDim.x + threadIdx.x] = mine;
}

__global__ void reduce_groups(const int* in, int* out) {
  auto warp = cg::tiled_partition<32>(cg::this_thread_block());
  int i = threadIdx.x;
  out[i * 3] = cg::reduce(warp, in[i], cg::plus<int>());
  out[i * 3 + 1] = cg::reduce(warp, in[i], cg::greater<int>());
  if (in[i] % 2 == 0) {
    auto even = cg::coalesced_threads();
    out[i * 3 + 2] = cg::reduce(even, in[i], cg::plus<int>());
  } else {
    out[i * 3 + 2] = -1;
  }
}

// How many lanes below have an odd number, each lane asking only those below.
__global__ void count_below(const int* in, int* out) {
  unsigned below = (1u << threadIdx.x) - 1;
  out[threadIdx.x] = __popc(__ballot_sync(below, in[threadIdx.x] % 2 == 1));
}

// Which state space an address lies in.
__global__ void spaces(int* global, int* out) {
  __shared__ int shared;
  int local = threadIdx.x;
  shared = 0;
  volatile int* p = threadIdx.x == 0 ? &local : threadIdx.x == 1 ? &shared : global;
  const void* q = const_cast<const int*>(p);
  out[threadIdx.x] = (__isLocal(q) ? 1 : 0) + (__isShared(q) ? 2 : 0) + (__isGlobal(q) ? 4 : 0);
  *p = *p + 5;
  out[threadIdx.x] += 100 * *p;
}

// The lanes of a warp fall into groups by `in`, and each group asks for itself, some lanes late.
__global__ void separate_groups(const int* in, unsigned* out) {
  const unsigned i = threadIdx.x;
  unsigned late = i >= 20 ? 40 : 3, value = i + 1;
  const unsigned mates = __match_any_sync(0xffffffff, in[i]);
  while (late-- > 0) value = value * 2 + 1;
  out[i * 5] = __ballot_sync(mates, value != 0);
  out[i * 5 + 1] = __any_sync(mates, i == 7) + 2 * __all_sync(mates, i >= 3);
  out[i * 5 + 2] = __shfl_sync(mates, i, __ffs(mates) - 1);
  int same;
  out[i * 5 + 3] = __match_all_sync(mates, in[i], &same) + same;
#if __CUDA_ARCH__ >= 800
  out[i * 5 + 4] = __reduce_add_sync(mates, i);
#else
  out[i * 5 + 4] = 0;
  for (unsigned j = 0; j < 32; ++j) out[i * 5 + 4] += mates >> j & 1 ? j : 0;
#endif
}

// Vectors of equal elements, and whether elements differ.
#define PUT(vector, element, letter, text)                                            \
  __device__ void put(vector* p, unsigned i) {                                        \
    asm volatile("st.relaxed.gpu." text ";" ::"l"(p), letter(element(i)) : "memory"); \
  }
PUT(ulonglong2, (unsigned long long), "l", "v2.u64 [%0], {%1, %1}")
PUT(uint4, unsigned, "r", "v4.u32 [%0], {%1, %1, %1, %1}")
PUT(uint2, unsigned, "r", "v2.u32 [%0], {%1, %1}")
PUT(ushort4, (unsigned short), "h", "v4.u16 [%0], {%1, %1, %1, %1}")
__device__ bool torn(ulonglong2* p) {
  unsigned long long x, y;
  asm volatile("ld.relaxed.gpu.v2.u64 {%0, %1}, [%2];" : "=l"(x), "=l"(y) : "l"(p) : "memory");
  return x != y;
}
__device__ bool torn(uint2* p) {
  unsigned x, y;
  asm volatile("ld.relaxed.gpu.v2.u32 {%0, %1}, [%2];" : "=r"(x), "=r"(y) : "l"(p) : "memory");
  return x != y;
}
#define TORN_FOUR(vector, element, letter, type)                              \
  __device__ bool torn(vector* p) {                                           \
    element x, y, z, u;                                                       \
    asm volatile("ld.relaxed.gpu.v4." type " {%0, %1, %2, %3}, [%4];"         \
                 : "=" letter(x), "=" letter(y), "=" letter(z), "=" letter(u) \
                 : "l"(p)                                                     \
                 : "memory");                                                 \
    return x != y || x != z || x != u;                                        \
  }
TORN_FOUR(uint4, unsigned, "r", "u32")
TORN_FOUR(ushort4, unsigned short, "h", "u16")

// Of each pair of blocks one writes a vector per thread and the other one looks for torn ones, all
// lanes together or, with some at rest, apart. counts: of a pair's blocks, who has come and who is
// done.
template <class V>
__device__ void race(V* vectors, int rounds, unsigned lanes, unsigned* counts, unsigned* bad) {
  V* p = vectors + blockIdx.x / 2 * 32 + threadIdx.x;
  volatile unsigned* count = counts + blockIdx.x / 2 * 2;
  if (threadIdx.x == 0) {
    atomicAdd(counts + blockIdx.x / 2 * 2, 1);
    while (count[0] < 2) {
    }
  }
  __syncthreads();
  if (blockIdx.x % 2 != 0) {
    while (count[1] == 0) {
      if ((lanes >> threadIdx.x & 1) != 0 && torn(p)) atomicAdd(bad, 1);
    }
  } else {
    for (int i = 0; i < rounds; ++i) {
      if ((lanes >> threadIdx.x & 1) != 0) put(p, i);
    }
    __syncthreads();
    if (threadIdx.x == 0) atomicAdd(counts + blockIdx.x / 2 * 2 + 1, 1);
  }
}
__global__ void race_for_vectors(void* at, int kind, int rounds, unsigned lanes, unsigned* counts,
                                 unsigned* bad) {
  if (kind == 0) race(static_cast<ulonglong2*>(at), rounds, lanes, counts, bad);
  if (kind == 1) race(static_cast<uint4*>(at), rounds, lanes, counts, bad);
  if (kind == 2) race(static_cast<uint2*>(at), rounds, lanes, counts, bad);
  if (kind == 3) race(static_cast<ushort4*>(at), rounds, lanes, counts, bad);
}

// Vectors whose elements come back in the opposite order, and changed as their signs say.
__global__ void small_vectors(const uchar4* a, uchar4* b, const char2* c, char2* d, const short4* e,
                              short4* f, const int2* g, int2* h) {
  const int i = threadIdx.x;
  b[i] = make_uchar4(a[i].w, a[i].z, a[i].y, a[i].x / 2);
  d[i] = make_char2(c[i].y, c[i].x / 2);
  f[i] = make_short4(e[i].w, e[i].z, e[i].y, e[i].x / 2);
  h[i] = make_int2(g[i].y, g[i].x / 2);
}

// Lanes stay in a loop for different times; what an instruction keeps in between must be its own.
// The early ones wait in a vote for the others.
__global__ void long_apart(unsigned* bad, int rounds) {
  const unsigned thread = threadIdx.x, lane = thread % 32;
  unsigned number = thread * 2654435761u + 1;
  unsigned wrong = 0;
  for (int r = 0; r < rounds; ++r) {
    number = number * 1664525 + 1013904223;
    const unsigned n = (number >> 8) % 40;
    for (unsigned i = 0; i < n; ++i) {
      unsigned index, both;
      unsigned long long wide;
      asm volatile("mov.u32 %0, %%tid.x;" : "=r"(index));
      asm volatile(
          "{ .reg .pred p, q; setp.lt.u32 q, %1, 20; setp.lt.and.u32 p, %2, 16, !q;"
          " selp.u32 %0, 1, 0, p; }"
          : "=r"(both)
          : "r"(i), "r"(lane));
      asm volatile("cvt.u64.u32 %0, %%laneid;" : "=l"(wide));
      wrong += index != thread || both != (lane < 16 && i >= 20) || wide != lane;
    }
    if (r % 16 != 0) continue;
    unsigned late = lane < 8 ? 0 : 600, all, index;
    for (; late > 0; --late) asm volatile("mov.u32 %0, %%tid.x;" : "=r"(index));
    asm volatile(
        "{ .reg .pred p, q; setp.gt.u32 p, %1, 100; vote.sync.all.pred q, !p, 0xffffffff;"
        " selp.u32 %0, 1, 0, q; }"
        : "=r"(all)
        : "r"(lane));
    wrong += all != 1;
  }
  if (wrong != 0) atomicAdd(bad, wrong);
}
