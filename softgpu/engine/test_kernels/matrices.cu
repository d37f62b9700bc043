// Products of small matrices by one warp, by nvcc's own fragments and by instructions whose
// fragments PTX describes.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>

#include <cstdint>

using namespace nvcuda;

// d = 2 * (a * b + c) with strides of 40 elements; c and d by columns.
template <class In, class Kept, class Sum, int M, int N, int K, class OrderOfA, class OrderOfB>
__device__ void product(const Kept* a, const Kept* b, const Sum* c, Sum* d) {
  wmma::fragment<wmma::matrix_a, M, N, K, In, OrderOfA> fa;
  wmma::fragment<wmma::matrix_b, M, N, K, In, OrderOfB> fb;
  wmma::fragment<wmma::accumulator, M, N, K, Sum> fc;
  wmma::load_matrix_sync(fa, a, 40);
  wmma::load_matrix_sync(fb, b, 40);
  wmma::load_matrix_sync(fc, c, 40, wmma::mem_col_major);
  wmma::mma_sync(fc, fa, fb, fc);
  for (int i = 0; i < fc.num_elements; ++i) fc.x[i] = fc.x[i] + fc.x[i];
  wmma::store_matrix_sync(d, fc, 40, wmma::mem_col_major);
}

// a by rows and b by columns, and the other way round in a kernel whose name says so.
#define ORDERED(name, in, kept, sum, m, n, k, order_a, order_b)                         \
  extern "C" __global__ void name(const kept* a, const kept* b, const sum* c, sum* d) { \
    product<in, kept, sum, m, n, k, wmma::order_a, wmma::order_b>(a, b, c, d);          \
  }
#define PRODUCT(name, in, kept, sum, m, n, k)                 \
  ORDERED(name, in, kept, sum, m, n, k, row_major, col_major) \
  ORDERED(turned_##name, in, kept, sum, m, n, k, col_major, row_major)
#define PRODUCTS(name, in, sum)                   \
  PRODUCT(name##_square, in, in, sum, 16, 16, 16) \
  PRODUCT(name##_tall, in, in, sum, 32, 8, 16)    \
  PRODUCT(name##_wide, in, in, sum, 8, 32, 16)
PRODUCTS(bfloat, __nv_bfloat16, float)
PRODUCTS(byte, signed char, int)
PRODUCT(double_small, double, double, double, 8, 8, 4)
PRODUCTS(half, __half, float)
PRODUCTS(half_sum, __half, __half)
PRODUCT(tf32_square, wmma::precision::tf32, float, float, 16, 16, 8)
PRODUCTS(unsigned_byte, unsigned char, int)

// Factors a little below what they were, which rounding to tf32 undoes.
extern "C" __global__ void tf32_rounded(const float* a, const float* b, const float* c, float* d) {
  wmma::fragment<wmma::matrix_a, 16, 16, 8, wmma::precision::tf32, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, 16, 16, 8, wmma::precision::tf32, wmma::col_major> fb;
  wmma::fragment<wmma::accumulator, 16, 16, 8, float> fc;
  wmma::load_matrix_sync(fa, a, 40);
  wmma::load_matrix_sync(fb, b, 40);
  wmma::load_matrix_sync(fc, c, 40, wmma::mem_col_major);
  for (float& x : fa.x) x = wmma::__float_to_tf32(x * 0.9999f);
  for (float& x : fb.x) x = wmma::__float_to_tf32(x * 0.9999f);
  wmma::mma_sync(fc, fa, fb, fc);
  for (float& x : fc.x) x *= 2;
  wmma::store_matrix_sync(d, fc, 40, wmma::mem_col_major);
}

// d = a * b, d by rows; rows of a and columns of b are twice as far apart as they are long.
template <class In, int K, class Multiply>
__device__ void small_product(const void* a, const void* b, int* d, Multiply multiply) {
  wmma::fragment<wmma::matrix_a, 8, 8, K, In, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, 8, 8, K, In, wmma::col_major> fb;
  wmma::fragment<wmma::accumulator, 8, 8, K, int> fd;
  wmma::fill_fragment(fd, 0);
  wmma::load_matrix_sync(fa, a, 2 * K);
  wmma::load_matrix_sync(fb, b, 2 * K);
  multiply(fd, fa, fb);
  wmma::store_matrix_sync(d, fd, 8, wmma::mem_row_major);
}

#define SMALL_PRODUCT(name, in, k, call)                                    \
  extern "C" __global__ void name(const void* a, const void* b, int* d) {   \
    auto multiply = [](auto& fd, auto& fa, auto& fb) { call; };             \
    small_product<wmma::experimental::precision::in, k>(a, b, d, multiply); \
  }
SMALL_PRODUCT(bits_and, b1, 128, wmma::bmma_sync(fd, fa, fb, fd, wmma::experimental::bmmaBitOpAND))
SMALL_PRODUCT(bits_xor, b1, 128, wmma::bmma_sync(fd, fa, fb, fd))
SMALL_PRODUCT(nibbles, s4, 32, wmma::mma_sync(fd, fa, fb, fd))
SMALL_PRODUCT(unsigned_nibbles, u4, 32, wmma::mma_sync(fd, fa, fb, fd))

// a is 16 by 16 by rows, b 16 by 8 by rows, both in shared memory first; d 16 by 8 by rows.
extern "C" __global__ void rows_to_product(const __half* a, const __half* b, float* d,
                                           uint32_t* copy) {
  __shared__ __align__(16) __half shared_a[256];
  __shared__ __align__(16) __half shared_b[128];
  int lane = threadIdx.x;
  for (int i = lane; i < 256; i += 32) shared_a[i] = a[i];
  for (int i = lane; i < 128; i += 32) shared_b[i] = b[i];
  __syncwarp();
  uint32_t fa[4], fb[2];
  float fd[4];
  // Matrices 0 and 1 of a lie one below the other, 2 and 3 beside them.
  auto pa = static_cast<uint32_t>(
      __cvta_generic_to_shared(shared_a + (lane % 8 + lane / 8 % 2 * 8) * 16 + lane / 16 * 8));
  auto pb = static_cast<uint32_t>(__cvta_generic_to_shared(shared_b + lane % 16 * 8));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(fa[0]), "=r"(fa[1]), "=r"(fa[2]), "=r"(fa[3])
               : "r"(pa));
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
               : "=r"(fb[0]), "=r"(fb[1])
               : "r"(pb));
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, "
      "{%4, %5, %6, %7}, {%8, %9}, {%10, %10, %10, %10};"
      : "=f"(fd[0]), "=f"(fd[1]), "=f"(fd[2]), "=f"(fd[3])
      : "r"(fa[0]), "r"(fa[1]), "r"(fa[2]), "r"(fa[3]), "r"(fb[0]), "r"(fb[1]), "f"(0.0f));
  for (int i = 0; i < 4; ++i) d[(lane / 4 + i / 2 * 8) * 8 + lane % 4 * 2 + i % 2] = fd[i];
  __syncwarp();
  asm volatile("stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%0], {%1, %2};" ::"r"(pb),
               "r"(fb[0]), "r"(fb[1])
               : "memory");
  __syncwarp();
  for (int i = lane; i < 64; i += 32) copy[i] = reinterpret_cast<uint32_t*>(shared_b)[i];
}

// Bytes: lane l has of row l / 4 the four elements from l % 4 * 4 on, and the same 16 further on.
extern "C" __global__ void byte_product(const uint32_t* a, const uint32_t* b, int* d) {
  int lane = threadIdx.x, row = lane / 4, word = lane % 4;
  int c = 0x7ffffff0;  // so that sums reach the largest integer
  int fd[4];
  asm volatile(
      "mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.u8.s32 {%0, %1, %2, %3}, "
      "{%4, %5, %6, %7}, {%8, %9}, {%10, %10, %10, %10};"
      : "=r"(fd[0]), "=r"(fd[1]), "=r"(fd[2]), "=r"(fd[3])
      : "r"(a[row * 8 + word]), "r"(a[(row + 8) * 8 + word]), "r"(a[row * 8 + word + 4]),
        "r"(a[(row + 8) * 8 + word + 4]), "r"(b[row * 8 + word]), "r"(b[row * 8 + word + 4]),
        "r"(c));
  for (int i = 0; i < 4; ++i) d[(row + i / 2 * 8) * 8 + word * 2 + i % 2] = fd[i];
}

#define LOAD(count, ...)                                                                \
  asm volatile("ldmatrix.sync.aligned.m8n8." count ".shared.b16 " __VA_ARGS__ ", [%4];" \
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])                         \
               : "r"(row))
#define STORE(count, ...)                                                               \
  asm volatile("stmatrix.sync.aligned.m8n8." count ".shared.b16 [%0], " __VA_ARGS__ ";" \
               :                                                                        \
               : "r"(row), "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3])                   \
               : "memory")
#define MOVED(load, change, store)                                  \
  {                                                                 \
    for (int i = threadIdx.x; i < 128; i += 32) shared[i] = in[i];  \
    __syncwarp();                                                   \
    load;                                                           \
    change;                                                         \
    store;                                                          \
    __syncwarp();                                                   \
    for (int i = threadIdx.x; i < 128; i += 32) *out++ = shared[i]; \
  }

// in: four matrices of 8 by 8 16-bit elements, through registers and back; each of the ways turns
// the first one, two or four round, or not. Lane l writes word l, l + 32 and so on.
extern "C" __global__ void rows_moved(const uint32_t* in, uint32_t* out) {
  __shared__ __align__(16) uint32_t shared[128];
  auto row = static_cast<uint32_t>(__cvta_generic_to_shared(shared + threadIdx.x * 4));
  uint32_t r[4];
  out += threadIdx.x * 24;
  MOVED(LOAD("x1", "{%0}"), , STORE("x1", "{%1}"))
  MOVED(LOAD("x1.trans", "{%0}"), , STORE("x1", "{%1}"))
  MOVED(LOAD("x2", "{%0, %1}"), , STORE("x2.trans", "{%1, %2}"))
  MOVED(LOAD("x2.trans", "{%0, %1}"), , STORE("x2.trans", "{%1, %2}"))
  MOVED(LOAD("x4.trans", "{%0, %1, %2, %3}"), , STORE("x4", "{%1, %2, %3, %4}"))
  MOVED(LOAD("x4", "{%0, %1, %2, %3}"),
        for (uint32_t& x
             : r) asm("movmatrix.sync.aligned.m8n8.trans.b16 %0, %0;"
                      : "+r"(x)),
        STORE("x4", "{%1, %2, %3, %4}"))
}
