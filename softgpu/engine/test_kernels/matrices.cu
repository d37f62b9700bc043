// Products of small matrices by one warp, by nvcc's own fragments and by instructions whose
// fragments PTX describes.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>

#include <cstdint>

using namespace nvcuda;

// d = a * b + c with strides of 40 elements; c and d by columns.
template <class In, class Kept, class Sum, int M, int N, int K>
__device__ void product(const Kept* a, const Kept* b, const Sum* c, Sum* d) {
  wmma::fragment<wmma::matrix_a, M, N, K, In, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, M, N, K, In, wmma::col_major> fb;
  wmma::fragment<wmma::accumulator, M, N, K, Sum> fc;
  wmma::load_matrix_sync(fa, a, 40);
  wmma::load_matrix_sync(fb, b, 40);
  wmma::load_matrix_sync(fc, c, 40, wmma::mem_col_major);
  wmma::mma_sync(fc, fa, fb, fc);
  for (int i = 0; i < fc.num_elements; ++i) fc.x[i] = fc.x[i] + fc.x[i];
  wmma::store_matrix_sync(d, fc, 40, wmma::mem_col_major);
}

#define PRODUCT(name, in, kept, sum, m, n, k)                                           \
  extern "C" __global__ void name(const kept* a, const kept* b, const sum* c, sum* d) { \
    product<in, kept, sum, m, n, k>(a, b, c, d);                                        \
  }
PRODUCT(half_square, __half, __half, float, 16, 16, 16)
PRODUCT(half_tall, __half, __half, float, 32, 8, 16)
PRODUCT(half_wide, __half, __half, __half, 8, 32, 16)
PRODUCT(bfloat_square, __nv_bfloat16, __nv_bfloat16, float, 16, 16, 16)
PRODUCT(tf32_square, wmma::precision::tf32, float, float, 16, 16, 8)
PRODUCT(byte_tall, signed char, signed char, int, 32, 8, 16)
PRODUCT(double_small, double, double, double, 8, 8, 4)

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
