// What newer devices have besides barriers, matrices and quarters: values of 128 bits, vectors of
// atomics, reductions of whole blocks of memory, groups of several warps; and a few older things
// that are rare.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cuda_fp16.h>

namespace cg = cooperative_groups;

struct alignas(16) Two {
  unsigned long long low, high;
};

// Counts in both halves at once, which must never be seen apart.
__global__ void count_wide(Two* count, Two* box, int* torn, int times) {
  for (int i = 0; i < times; ++i) {
    Two old{0, 0};
    for (;;) {
      const Two seen = atomicCAS(count, old, Two{old.low + 1, old.high + 3});
      if (seen.low == old.low && seen.high == old.high) break;
      old = seen;
    }
    if (old.high != 3 * old.low) atomicAdd(torn, 1);
    const Two before = atomicExch(box, Two{threadIdx.x + 1ull, threadIdx.x + 1ull});
    if (before.low != before.high) atomicAdd(torn, 1);
  }
}

__global__ void count_wide_shared(Two* out) {
  __shared__ Two count;
  if (threadIdx.x == 0) count = Two{0, 0};
  __syncthreads();
  Two old{0, 0}, seen = atomicCAS(&count, old, Two{1, 2});
  while (seen.low != old.low || seen.high != old.high) {
    old = seen;
    seen = atomicCAS(&count, old, Two{old.low + 1, old.high + 2});
  }
  __syncthreads();
  if (threadIdx.x == 0) *out = count;
}

__global__ void add_vectors(float4* four, float2* two, float4* last) {
  const float4 before = atomicAdd(four, float4{1, 2, 3, static_cast<float>(threadIdx.x)});
  atomicAdd(two, float2{0.5f, -1});
  if (before.x + 1 == blockDim.x * gridDim.x) *last = before;
}

// Rows of shared memory onto rows elsewhere.
__global__ void reduce_rows(int* sums, unsigned long long* most, __half* halves, int count) {
  __shared__ alignas(128) int values[64];
  __shared__ alignas(128) unsigned long long large[32];
  __shared__ alignas(128) __half small[64];
  values[threadIdx.x] = threadIdx.x + blockIdx.x;
  small[threadIdx.x] = __int2half_rn(threadIdx.x);
  if (threadIdx.x < 32) large[threadIdx.x] = (blockIdx.x + threadIdx.x) % 5 + (1ull << 40);
  asm volatile("fence.proxy.async.shared::cta;");
  __syncthreads();
  if (threadIdx.x != 0) return;
  const auto at = [](const void* p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); };
  unsigned long long policy;
  asm("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
  asm volatile(
      "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.s32 [%0], [%1], %2;" ::"l"(sums),
      "r"(at(values)), "r"(count * 4)
      : "memory");
  asm volatile(
      "cp.reduce.async.bulk.global.shared::cta.bulk_group.max.u64 [%0], [%1], 256;" ::"l"(most),
      "r"(at(large))
      : "memory");
  asm volatile(
      "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.noftz.f16 [%0], [%1], 128;" ::"l"(
          halves),
      "r"(at(small))
      : "memory");
  asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;" ::: "memory");
}

// Every second thread's copy reads nothing and writes zeros.
__global__ void copy_some(const int4* from, int4* to) {
  __shared__ int4 row[32];
  const unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(row + threadIdx.x));
  asm volatile(
      "{ .reg .pred ignores; setp.ne.u32 ignores, %2, 0;"
      " cp.async.ca.shared.global [%0], [%1], 16, ignores; cp.async.wait_all; }" ::"r"(at),
      "l"(from + threadIdx.x), "r"(threadIdx.x % 2)
      : "memory");
  to[threadIdx.x] = row[threadIdx.x];
}

// Sums in groups of four warps, whose meeting place is reserved shared memory.
__global__ void sum_groups(const int* values, int* sums) {
  __shared__ int own[256];
  own[threadIdx.x] = values[blockIdx.x * 256 + threadIdx.x];
  const auto group = cg::tiled_partition<128>(cg::this_thread_block());
  const int sum = cg::reduce(group, own[threadIdx.x], cg::plus<int>());
  if (group.thread_rank() == 0) sums[blockIdx.x * 2 + threadIdx.x / 128] = sum;
}

__global__ void find_set_bits(const unsigned* masks, unsigned* places) {
  for (int n = -3; n <= 3; ++n) {
    places[(n + 3) * 32 + threadIdx.x] = __fns(masks[threadIdx.x], threadIdx.x, n);
  }
}

__global__ void rare_numbers(const int2* in, int* out, unsigned* pairs) {
  const int2 v = in[threadIdx.x];
  int low, high;
  asm("min.relu.s32 %0, %1, %2;" : "=r"(low) : "r"(v.x), "r"(v.y));
  asm("max.relu.s32 %0, %1, %2;" : "=r"(high) : "r"(v.x), "r"(v.y));
  out[2 * threadIdx.x] = low;
  out[2 * threadIdx.x + 1] = high;
  const __half2 product = __hmul2_sat(__floats2half2_rn(v.x, v.y), __floats2half2_rn(0.5f, 0.25f));
  pairs[threadIdx.x] = *reinterpret_cast<const unsigned*>(&product);
}

// Pairs of clamped integers, six kinds with the bits of a third value above.
__global__ void pack_pairs(const int* in, unsigned* out) {
  const int a = in[threadIdx.x * 3], b = in[threadIdx.x * 3 + 1], c = in[threadIdx.x * 3 + 2];
  out += threadIdx.x * 8;
  asm("cvt.pack.sat.s16.s32 %0, %1, %2;" : "=r"(out[0]) : "r"(a), "r"(b));
  asm("cvt.pack.sat.u16.s32 %0, %1, %2;" : "=r"(out[1]) : "r"(a), "r"(b));
#define PACK(i, type) \
  asm("cvt.pack.sat." type ".s32.b32 %0, %1, %2, %3;" : "=r"(out[i]) : "r"(a), "r"(b), "r"(c))
  PACK(2, "s8");
  PACK(3, "u8");
  PACK(4, "s4");
  PACK(5, "u4");
  PACK(6, "s2");
  PACK(7, "u2");
}

// Integers that are seldom asked for, and numbers whose signs are combined.
__global__ void rare_operations(const int* in, int* out) {
  const int a = in[threadIdx.x * 3], b = in[threadIdx.x * 3 + 1], c = in[threadIdx.x * 3 + 2];
  const short sa = a, sb = b, sc = c;
  short s;
  unsigned short u;
  float least, most, nan;
  out += threadIdx.x * 10;
  asm("sad.s16 %0, %1, %2, %3;" : "=h"(s) : "h"(sa), "h"(sb), "h"(sc));
  asm("sad.u16 %0, %1, %2, %3;" : "=h"(u) : "h"(sa), "h"(sb), "h"(sc));
  out[0] = s;
  out[1] = u;
  asm("mad.hi.sat.s32 %0, %1, %2, %3;" : "=r"(out[2]) : "r"(a), "r"(b), "r"(c));
  asm("mad24.hi.sat.s32 %0, %1, %2, %3;" : "=r"(out[3]) : "r"(a), "r"(b), "r"(c));
  asm("{ .reg .pred p, q; setp.lt.s32 q, %4, 0; lop3.or.b32 %0|p, %2, %3, %4, 0x68, q;"
      " selp.s32 %1, 1, 0, p; }"
      : "=r"(out[4]), "=r"(out[5])
      : "r"(a), "r"(b), "r"(c));
  asm("{ .reg .pred p; setp.lt.s32 p, %3, 0; lop3.and.b32 _|p, %1, %2, %3, 0x80, !p;"
      " selp.s32 %0, 1, 0, p; }"
      : "=r"(out[6])
      : "r"(a), "r"(b), "r"(c));
  asm("min.xorsign.abs.f32 %0, %1, %2;" : "=f"(least) : "f"(float(a)), "f"(float(b)));
  asm("max.xorsign.abs.f32 %0, %1, %2;" : "=f"(most) : "f"(float(a)), "f"(float(b)));
  asm("max.NaN.xorsign.abs.f32 %0, %1, %2;" : "=f"(nan) : "f"(float(a)), "f"(nanf("")));
  out[7] = least;
  out[8] = most;
  out[9] = nan != nan;
}
