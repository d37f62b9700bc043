// Control flow, calls, printing, allocation, synchronisation and failures.
#include <cooperative_groups.h>

#include <cassert>
#include <cstdio>

namespace cg = cooperative_groups;

__constant__ int table[4] = {10, 20, 30, 40};
__device__ int counter = 5;
__device__ int grid_of_values[3][2] = {{1, 2}, {3, 4}, {5, 6}};
__device__ int* pointer_to_counter = &counter;

__global__ void read_variables(int* out) {
  int i = threadIdx.x;
  out[i] = table[i & 3] + *pointer_to_counter + grid_of_values[i % 3][i & 1];
}

__global__ void choose(const int* in, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int x = in[i];
  switch (x) {
    case 0:
      out[i] = x + 100;
      break;
    case 1:
      out[i] = x * 77;
      break;
    case 2:
      out[i] = x ^ 0x55;
      break;
    case 3:
      out[i] = out[i] - 9;
      break;
    case 4:
      out[i] = x << 5;
      break;
    case 5:
      out[i] = in[0];
      break;
    case 6:
      out[i] = -x;
      break;
    case 7:
      out[i] = 1 / (x - 6);
      break;
    default:
      out[i] = -1;
  }
}

__device__ __noinline__ int fibonacci(int n) {
  return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}
__global__ void recurse(int* out) { out[threadIdx.x] = fibonacci(threadIdx.x % 13); }

struct Shape {
  __device__ virtual int area() const = 0;
};
struct Square : Shape {
  int side;
  __device__ explicit Square(int s) : side(s) {}
  __device__ int area() const override { return side * side; }
};
struct Box : Shape {
  int width, height;
  __device__ Box(int w, int h) : width(w), height(h) {}
  __device__ int area() const override { return width * height; }
};
__global__ void virtual_calls(int* out) {
  int i = threadIdx.x;
  Shape* shape = i % 3 == 0 ? static_cast<Shape*>(new Square(i)) : new Box(i, 10);
  out[i] = shape == nullptr ? -1 : shape->area();
  delete shape;
}

typedef int (*Operation)(int, int);
__device__ int plus(int a, int b) { return a + b; }
__device__ int times(int a, int b) { return a * b; }
__device__ int minus(int a, int b) { return a - b; }
__device__ Operation operations[3] = {plus, times, minus};
__global__ void through_pointers(int* out) {
  int i = threadIdx.x;
  out[i] = operations[i % 3](i, 7);
}

struct Big {
  int values[20];
};
__device__ __noinline__ Big doubled(Big b, int k) {
  for (int i = 0; i < 20; ++i) b.values[i] = 2 * b.values[i] + k;
  return b;
}
__global__ void by_value(Big b, int* out, int index) {
  Big c = doubled(b, threadIdx.x);
  c.values[(index + threadIdx.x) % 20] += b.values[index];
  int sum = 0;
  for (int i = 0; i < 20; ++i) sum += c.values[(i * index) % 20];
  out[threadIdx.x] = sum;
}

__global__ void say(int n, double x) {
  printf("thread %d of %u: %s %5.2f %llx %c%%\n", threadIdx.x, blockDim.x, "text", x * threadIdx.x,
         0x123456789abcULL + n, 'a' + threadIdx.x);
}

__global__ void check(int limit) { assert(static_cast<int>(threadIdx.x) < limit); }
__global__ void stop_here() {
  if (threadIdx.x == 7) __trap();
}
__global__ void write_to(int* p, int offset) { p[offset + threadIdx.x] = 1; }
__global__ void write_misaligned(char* p) { *reinterpret_cast<int*>(p + 1) = 1; }
__global__ void read_shared_beyond(int* out, int index) {
  extern __shared__ int values[];
  values[threadIdx.x] = 1;
  __syncthreads();
  out[threadIdx.x] = values[index];
}
__global__ void spin_for_ever(volatile int* flag) {
  while (*flag == 0) {
  }
}
__device__ __noinline__ int endless(int n) { return n == -1 ? 0 : endless(n + 1) * 3 + n; }
__global__ void recurse_for_ever(int* out) { out[0] = endless(out[0]); }

// Every thread takes the same lock, within a warp too.
__global__ void lock_each(int* lock, int* count) {
  bool done = false;
  while (!done) {
    if (atomicCAS(lock, 0, 1) == 0) {
      __threadfence();
      *reinterpret_cast<volatile int*>(count) = *reinterpret_cast<volatile int*>(count) + 1;
      __threadfence();
      atomicExch(lock, 0);
      done = true;
    }
  }
}
// The same, written so that only the scheduler can let the holder go on.
__global__ void lock_strictly(int* lock, int* count) {
  while (atomicCAS(lock, 0, 1) != 0) {
  }
  *reinterpret_cast<volatile int*>(count) = *reinterpret_cast<volatile int*>(count) + 1;
  __threadfence();
  atomicExch(lock, 0);
}

// Block 0 waits for what the last block writes.
__global__ void wait_for_last(volatile int* flag, int* out) {
  if (blockIdx.x == gridDim.x - 1) {
    if (threadIdx.x == 0) *flag = 42;
  } else {
    while (*flag == 0) {
    }
    if (threadIdx.x == 0) atomicAdd(out, *flag);
  }
}
__global__ void set_flag(volatile int* flag) { *flag = 1; }

__global__ void grid_rounds(int* values, int* out, int rounds) {
  cg::grid_group grid = cg::this_grid();
  int i = grid.thread_rank();
  for (int r = 0; r < rounds; ++r) {
    int next = values[(i + 1) % grid.size()];
    grid.sync();
    values[i] = next + 1;
    grid.sync();
  }
  if (i == 0) out[0] = grid.size();
}

__global__ void groups(int* out) {
  cg::thread_block block = cg::this_thread_block();
  auto tile = cg::tiled_partition<8>(block);
  int value = threadIdx.x;
  for (int d = tile.size() / 2; d > 0; d /= 2) value += tile.shfl_xor(value, d);
  if (threadIdx.x % 2 == 1) {
    cg::coalesced_group odd = cg::coalesced_threads();
    value += 1000 * odd.thread_rank() + 100000 * odd.size();
  }
  out[threadIdx.x] = value;
}

__global__ void votes(const int* in, unsigned* out) {
  int i = threadIdx.x;
  bool p = in[i] > 3;
  out[i * 6] = __ballot_sync(0xffffffff, p);
  out[i * 6 + 1] = __any_sync(0xffffffff, p) + 2 * __all_sync(0xffffffff, p);
  out[i * 6 + 2] = __match_any_sync(0xffffffff, in[i]);
  int all;
  out[i * 6 + 3] = __match_all_sync(0xffffffff, in[0], &all) + all;
  out[i * 6 + 4] =
      __syncthreads_count(p) + 1000 * __syncthreads_and(p) + 2000 * __syncthreads_or(p);
  out[i * 6 + 5] = __shfl_sync(0xffffffff, i, i ^ 5, 16);
  if (i & 1) {
    unsigned mask = __activemask();
    out[i * 6 + 5] += 1000 * __popc(mask & 0xaaaaaaaa);
  }
}

__global__ void atomics(int* i32, unsigned* u32, unsigned long long* u64, float* f32, double* f64) {
  int t = blockIdx.x * blockDim.x + threadIdx.x;
  atomicAdd(&i32[0], t);
  atomicSub(&i32[1], t);
  atomicMin(&i32[2], -t);
  atomicMax(&i32[3], t);
  atomicAnd(&u32[0], ~(1u << (t & 31)));
  atomicOr(&u32[1], 1u << (t & 31));
  atomicXor(&u32[2], t);
  atomicInc(&u32[3], 6);
  atomicDec(&u32[4], 6);
  atomicAdd(&u64[0], 0x100000001ULL * t);
  atomicMax(&u64[1], 0x100000001ULL * t);
  unsigned long long old = u64[2], seen;
  do {
    seen = old;
    old = atomicCAS(&u64[2], seen, seen + 3);
  } while (old != seen);
  atomicAdd(&f32[0], 0.5f);
  atomicAdd(&f64[0], 0.25);
}

// Named barriers between a half that produces and a half that consumes.
__global__ void named_barriers(int* out) {
  __shared__ int box[32];
  if (threadIdx.x < 32) {
    box[threadIdx.x] = threadIdx.x * 3;
    asm volatile("bar.arrive 1, 64;" ::: "memory");
  } else {
    asm volatile("bar.sync 1, 64;" ::: "memory");
    out[threadIdx.x - 32] = box[31 - (threadIdx.x - 32)];
  }
}

__global__ void unknown(int* out) {
  int sum;
  asm("vadd.s32.s32.s32.sat %0, %1, %1;" : "=r"(sum) : "r"(out[0]));
  out[0] = sum;
}

__device__ __noinline__ int add_unknown(int x) {
  int sum;
  asm("vadd.s32.s32.s32.sat %0, %1, %1;" : "=r"(sum) : "r"(x));
  return sum;
}
__device__ int (*volatile unknown_function)(int) = add_unknown;
__global__ void call_unknown(int* out) { out[0] = unknown_function(out[0]); }

__global__ void empty() {}
