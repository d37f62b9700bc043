// Arithmetic in all types: each kernel writes its results by thread.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

__global__ void float_functions(const float* in, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float x = in[i];
  float* o = out + i * 16;
  o[0] = sinf(x);
  o[1] = cosf(x * 1000.0f);
  o[2] = expf(x);
  o[3] = logf(fabsf(x) + 0.5f);
  o[4] = powf(fabsf(x) + 0.1f, 1.7f);
  o[5] = tanhf(x);
  o[6] = atan2f(x, 0.7f);
  o[7] = sqrtf(fabsf(x));
  o[8] = erff(x);
  o[9] = fmodf(x, 0.37f);
  o[10] = rintf(x * 3);
  o[11] = floorf(x * 3) + ceilf(x * 5) + truncf(x * 7);
  o[12] = cbrtf(x);
  o[13] = tgammaf(fabsf(x) + 1);
  o[14] = sinf(x * 1e6f);
  o[15] = log1pf(fabsf(x)) + expm1f(x) + exp2f(x) + log2f(fabsf(x) + 1);
}

__global__ void double_functions(const double* in, double* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  double x = in[i];
  double* o = out + i * 12;
  o[0] = sin(x);
  o[1] = cos(x * 1e7);
  o[2] = exp(x);
  o[3] = log(fabs(x) + 0.5);
  o[4] = pow(fabs(x) + 0.1, 1.7);
  o[5] = tanh(x);
  o[6] = 1.0 / (x + 10);
  o[7] = sqrt(fabs(x));
  o[8] = erf(x);
  o[9] = fmod(x, 0.37);
  o[10] = x / 3.7 + rsqrt(fabs(x) + 1);
  o[11] = fma(x, x, -1.0) + __dadd_rz(x, 1e-17) + __ddiv_ru(x, 3.0);
}

__global__ void rounding(const float* in, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float x = in[i], y = 0.1f;
  float* o = out + i * 12;
  o[0] = __fadd_rn(x, y);
  o[1] = __fadd_rz(x, y);
  o[2] = __fadd_ru(x, y);
  o[3] = __fadd_rd(x, y);
  o[4] = __fmul_ru(x, y);
  o[5] = __fmaf_rd(x, y, y);
  o[6] = __fdiv_rz(x, 3.0f);
  o[7] = __fsqrt_rd(fabsf(x));
  o[8] = __int2float_rz(16777217 + i);
  o[9] = __double2float_ru(0.1);
  o[10] = static_cast<float>(__float2int_rd(x * 10)) + __float2int_ru(x * 10);
  o[11] = __saturatef(x) + static_cast<float>(__float2int_rn(x * 10));
}

__global__ void integers(const int64_t* in, int64_t* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int64_t a = in[2 * i], b = in[2 * i + 1];
  uint64_t u = a, v = b;
  int32_t c = a, d = b;
  uint32_t e = a, f = b;
  int64_t* o = out + i * 24;
  o[0] = b != 0 ? a / b : 0;
  o[1] = b != 0 ? a % b : 0;
  o[2] = v != 0 ? u / v : 0;
  o[3] = v != 0 ? u % v : 0;
  o[4] = d != 0 ? c / d : 0;
  o[5] = f != 0 ? e % f : 0;
  o[6] = __mul64hi(a, b);
  o[7] = __umul64hi(u, v);
  o[8] = __mulhi(c, d);
  o[9] = __popc(e) + 100 * __popcll(u);
  o[10] = __clz(c) + 100 * __clzll(a);
  o[11] = __brev(e);
  o[12] = __brevll(u);
  o[13] = __ffs(c) + 100 * __ffsll(a);
  o[14] = __byte_perm(e, f, 0x5410 + (i & 7));
  o[15] = __funnelshift_l(e, f, i);
  o[16] = __funnelshift_rc(e, f, i);
  o[17] = __sad(c, d, 7u);
  o[18] = static_cast<int8_t>(a) + static_cast<uint8_t>(b) + static_cast<int16_t>(a >> 8);
  o[19] = (e >> (i & 31)) + (c >> (i & 31)) + (e << (i & 31));
  o[20] = a >> (i & 63);
  o[21] = min(c, d) + max(e, f) + min(a, b);
  o[22] = abs(c) ^ (~e & f) | (a & 0xff00);
  o[23] = __dp4a(c, d, 5) + __dp4a(e, f, 5u);
}

__global__ void parts_of_words(const int32_t* in, uint32_t* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int32_t a = in[2 * i], b = in[2 * i + 1];
  uint32_t* o = out + i * 6;
  o[0] = __vimax_s32_relu(a, b);
  o[1] = __vimin_s32_relu(a, b);
  o[2] = __vimax_s16x2_relu(a, b);
  o[3] = __vimin_s16x2_relu(a, b);
  o[4] = __vsadu2(a, b) + 3 * __vsads2(a, b);
  o[5] = __vsadu4(a, b) + 3 * __vsads4(a, b);
}

__global__ void wide_product(const uint64_t* a, const uint64_t* b, uint64_t* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned __int128 x = static_cast<unsigned __int128>(a[i]) * b[i];
  x += static_cast<unsigned __int128>(a[i]) << 64 | b[i];
  x -= 12345;
  out[2 * i] = static_cast<uint64_t>(x);
  out[2 * i + 1] = static_cast<uint64_t>(x >> 64);
}

// Carry chains as bignum libraries write them.
__global__ void carry_chain(const uint32_t* a, const uint32_t* b, uint32_t* sum,
                            uint32_t* difference) {
  int i = threadIdx.x * 4;
  asm("add.cc.u32 %0, %4, %8;\n\taddc.cc.u32 %1, %5, %9;\n\t"
      "addc.cc.u32 %2, %6, %10;\n\taddc.u32 %3, %7, %11;"
      : "=r"(sum[i]), "=r"(sum[i + 1]), "=r"(sum[i + 2]), "=r"(sum[i + 3])
      : "r"(a[i]), "r"(a[i + 1]), "r"(a[i + 2]), "r"(a[i + 3]), "r"(b[i]), "r"(b[i + 1]),
        "r"(b[i + 2]), "r"(b[i + 3]));
  asm("sub.cc.u32 %0, %4, %8;\n\tsubc.cc.u32 %1, %5, %9;\n\t"
      "subc.cc.u32 %2, %6, %10;\n\tsubc.u32 %3, %7, %11;"
      : "=r"(difference[i]), "=r"(difference[i + 1]), "=r"(difference[i + 2]),
        "=r"(difference[i + 3])
      : "r"(a[i]), "r"(a[i + 1]), "r"(a[i + 2]), "r"(a[i + 3]), "r"(b[i]), "r"(b[i + 1]),
        "r"(b[i + 2]), "r"(b[i + 3]));
}

__global__ void halves(const float* in, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float* o = out + i * 12;
  __half a = __float2half(in[i]), b = __float2half(1.375f);
  o[0] = __half2float(a);
  o[1] = __half2float(__hadd(a, b));
  o[2] = __half2float(__hmul(a, b));
  o[3] = __half2float(__hfma(a, b, a));
  o[4] = __half2float(__hmax(a, b)) + (__hlt(a, b) ? 100 : 0);
  __half2 pair = __floats2half2_rn(in[i], in[i] * 2);
  __half2 sum = __hfma2(pair, pair, __half2half2(b));
  o[5] = __low2float(sum);
  o[6] = __high2float(__hsub2(sum, pair));
  o[7] = __half2float(hexp2(a)) + __half2float(hsqrt(__habs(a)));
  o[8] = __half2int_rz(__hmul(a, b)) + __half2float(__int2half_rn(i));
  __nv_bfloat16 c = __float2bfloat16(in[i]);
  o[9] = __bfloat162float(c);
  o[10] = __bfloat162float(__hadd(c, __float2bfloat16(2.5f)));
  __nv_bfloat16 zero = __float2bfloat16(0.0f);
#if __CUDA_ARCH__ >= 800
  o[11] = __bfloat162float(__hfma(c, c, c)) + (__hgt(c, zero) ? 100 : 0);
#else
  float f = __bfloat162float(c);
  o[11] = __bfloat162float(__float2bfloat16(f * f + f)) + (f > __bfloat162float(zero) ? 100 : 0);
#endif
}

// Of each thread's a and b, two words each (the low one first), and c: chains of carries in words
// of one size. d, the borrow as nvcc asks for it (no borrow is a carry), and as a mask.
#define CHAINS(name, word, letter, type)                                                        \
  __global__ void name(const word* in, word* out) {                                             \
    in += threadIdx.x * 5;                                                                      \
    out += threadIdx.x * 14;                                                                    \
    const word a = in[0], ah = in[1], b = in[2], bh = in[3], c = in[4];                         \
    asm("add.cc." type " %0, %3, %5; addc.cc." type " %1, %4, %6; addc." type " %2, 0, 0;"      \
        : "=" letter(out[0]), "=" letter(out[1]), "=" letter(out[2])                            \
        : letter(a), letter(ah), letter(b), letter(bh));                                        \
    asm("sub.cc." type " %0, %3, %5; subc.cc." type " %1, %4, %6; addc." type " %2, 0, 0;"      \
        : "=" letter(out[3]), "=" letter(out[4]), "=" letter(out[5])                            \
        : letter(a), letter(ah), letter(b), letter(bh));                                        \
    asm("sub.cc." type " %0, %2, %4; subc.cc." type " %0, %3, %5; subc." type " %1, 0, 0;"      \
        : "=&" letter(out[6]), "=" letter(out[7])                                               \
        : letter(a), letter(ah), letter(b), letter(bh));                                        \
    asm("add.cc." type " %0, %2, %3; subc." type " %1, %4, %5;"                                 \
        : "=&" letter(out[8]), "=" letter(out[9])                                               \
        : letter(a), letter(b), letter(ah), letter(bh));                                        \
    asm("mad.lo.cc." type " %0, %4, %5, %6; madc.hi.cc." type                                   \
        " %1, %4, %5, %7; "                                                                     \
        "madc.lo." type " %2, %4, %6, %5; sub.cc." type                                         \
        " %3, %4, %5; "                                                                         \
        "madc.hi." type " %3, %4, %5, %7;"                                                      \
        : "=&" letter(out[10]), "=&" letter(out[11]), "=&" letter(out[12]), "=" letter(out[13]) \
        : letter(a), letter(b), letter(c), letter(ah));                                         \
  }
CHAINS(chains_of_32, unsigned, "r", "u32")
CHAINS(chains_of_64, unsigned long long, "l", "u64")

__global__ void divide_wide(const unsigned __int128* in, unsigned __int128* out) {
  in += threadIdx.x * 2;
  out += threadIdx.x * 4;
  out[0] = in[0] / in[1];
  out[1] = in[0] % in[1];
  out[2] = static_cast<__int128>(in[0]) / static_cast<__int128>(in[1]);
  out[3] = static_cast<__int128>(in[0]) % static_cast<__int128>(in[1]);
}

// in: zero, infinity and -1.
__global__ void no_numbers(const float* in, unsigned* out, unsigned long long* wide) {
  const float zero = in[0], infinity = in[1], minus = in[2];
  out[0] = __float_as_uint(zero / zero);
  out[1] = __float_as_uint(sqrtf(minus));
  out[2] = __float_as_uint(rsqrtf(minus));
  out[3] = __float_as_uint(fmaxf(zero / zero, minus / zero - infinity * zero));
  out[4] = __float_as_uint(static_cast<float>(static_cast<double>(zero) / zero));
  wide[0] = __double_as_longlong(static_cast<double>(zero) / zero);
  wide[1] = __double_as_longlong(static_cast<double>(infinity - infinity));
}
