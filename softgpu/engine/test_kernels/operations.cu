// Every operation of operations.inc on operands from `in`; NaNs come out as one value, because
// their bits are nobody's promise.
#include <cstdint>

__device__ uint64_t bits(uint32_t v) { return v; }
__device__ uint64_t bits(uint64_t v) { return v; }
__device__ uint64_t bits(uint16_t v) { return v; }
__device__ uint64_t bits(float v) { return v != v ? 0x7fffffffu : __float_as_uint(v); }
__device__ uint64_t bits(double v) {
  return v != v ? 0x7fffffffffffffffULL : __double_as_longlong(v);
}
__device__ uint32_t half_bits(uint32_t v) { return (v & 0x7fff) > 0x7c00 ? 0x7fff : v; }
__device__ uint32_t bfloat_bits(uint32_t v) { return (v & 0x7fff) > 0x7f80 ? 0x7fff : v; }

#define RUN(result_type, result_letter, code, show, ...)         \
  {                                                              \
    result_type r;                                               \
    asm volatile(code ";" : "=" result_letter(r) : __VA_ARGS__); \
    out[(k++) * n + i] = show;                                   \
  }
#define ONE(T, t, op, show, a) RUN(T, t, #op " %0, %1", show, a)
#define TWO(T, t, op, show, a, b) RUN(T, t, #op " %0, %1, %2", show, a, b)
#define THREE(T, t, op, show, a, b, c) RUN(T, t, #op " %0, %1, %2, %3", show, a, b, c)
#define FOUR(T, t, op, show, a, b, c, d) RUN(T, t, #op " %0, %1, %2, %3, %4", show, a, b, c, d)

#define I1(op) ONE(uint32_t, "r", op, bits(r), "r"(ia))
#define I2(op) TWO(uint32_t, "r", op, bits(r), "r"(ia), "r"(ib))
#define I3(op) THREE(uint32_t, "r", op, bits(r), "r"(ia), "r"(ib), "r"(ic))
#define I2R(op) TWO(uint32_t, "r", op, bits(r), "r"(ia), "r"(count))
#define I3R(op) THREE(uint32_t, "r", op, bits(r), "r"(ia), "r"(ib), "r"(count))
#define I3RR(op) THREE(uint32_t, "r", op, bits(r), "r"(ia), "r"(count), "r"(length))
#define I4RR(op) FOUR(uint32_t, "r", op, bits(r), "r"(ia), "r"(ib), "r"(count), "r"(length))
#define L1(op) ONE(uint64_t, "l", op, bits(r), "l"(la))
#define L2(op) TWO(uint64_t, "l", op, bits(r), "l"(la), "l"(lb))
#define L3(op) THREE(uint64_t, "l", op, bits(r), "l"(la), "l"(lb), "l"(lc))
#define L2R(op) TWO(uint64_t, "l", op, bits(r), "l"(la), "r"(count))
#define L3RR(op) THREE(uint64_t, "l", op, bits(r), "l"(la), "r"(count), "r"(length))
#define L4RR(op) FOUR(uint64_t, "l", op, bits(r), "l"(la), "l"(lb), "r"(count), "r"(length))
#define S1(op) ONE(uint16_t, "h", op, bits(r), "h"(sa))
#define S2(op) TWO(uint16_t, "h", op, bits(r), "h"(sa), "h"(sb))
#define S2R(op) TWO(uint16_t, "h", op, bits(r), "h"(sa), "r"(count))
#define LI1(op) ONE(uint64_t, "l", op, bits(r), "r"(ia))
#define LI2(op) TWO(uint64_t, "l", op, bits(r), "r"(ia), "r"(ib))
#define IS2(op) TWO(uint32_t, "r", op, bits(r), "h"(sa), "h"(sb))
#define IL1(op) ONE(uint32_t, "r", op, bits(r), "l"(la))
#define F1(op) ONE(float, "f", op, bits(r), "f"(fa))
#define F2(op) TWO(float, "f", op, bits(r), "f"(fa), "f"(fb))
#define F3(op) THREE(float, "f", op, bits(r), "f"(fa), "f"(fb), "f"(fc))
#define D1(op) ONE(double, "d", op, bits(r), "d"(da))
#define D2(op) TWO(double, "d", op, bits(r), "d"(da), "d"(db))
#define D3(op) THREE(double, "d", op, bits(r), "d"(da), "d"(db), "d"(dc))
#define H1(op) ONE(uint16_t, "h", op, half_bits(r), "h"(sa))
#define H2(op) TWO(uint16_t, "h", op, half_bits(r), "h"(sa), "h"(sb))
#define H3(op) THREE(uint16_t, "h", op, half_bits(r), "h"(sa), "h"(sb), "h"(sc))
#define B1(op) ONE(uint16_t, "h", op, bfloat_bits(r), "h"(sa))
#define B2(op) TWO(uint16_t, "h", op, bfloat_bits(r), "h"(sa), "h"(sb))
#define B3(op) THREE(uint16_t, "h", op, bfloat_bits(r), "h"(sa), "h"(sb), "h"(sc))
#define PAIR(show) show(r & 0xffff) | static_cast<uint64_t>(show(r >> 16)) << 16
#define P1(op) ONE(uint32_t, "r", op, PAIR(half_bits), "r"(ia))
#define P2(op) TWO(uint32_t, "r", op, PAIR(half_bits), "r"(ia), "r"(ib))
#define P3(op) THREE(uint32_t, "r", op, PAIR(half_bits), "r"(ia), "r"(ib), "r"(ic))
#define Q2(op) TWO(uint32_t, "r", op, PAIR(bfloat_bits), "r"(ia), "r"(ib))
#define Q3(op) THREE(uint32_t, "r", op, PAIR(bfloat_bits), "r"(ia), "r"(ib), "r"(ic))
#define IF(op) ONE(uint32_t, "r", op, bits(r), "f"(fa))
#define LF(op) ONE(uint64_t, "l", op, bits(r), "f"(fa))
#define SF(op) ONE(uint16_t, "h", op, bits(r), "f"(fa))
#define ID(op) ONE(uint32_t, "r", op, bits(r), "d"(da))
#define LD(op) ONE(uint64_t, "l", op, bits(r), "d"(da))
#define FI(op) ONE(float, "f", op, bits(r), "r"(ia))
#define FL(op) ONE(float, "f", op, bits(r), "l"(la))
#define DI(op) ONE(double, "d", op, bits(r), "r"(ia))
#define DL(op) ONE(double, "d", op, bits(r), "l"(la))
#define FD(op) ONE(float, "f", op, bits(r), "d"(da))
#define DF(op) ONE(double, "d", op, bits(r), "f"(fa))
#define FH(op) ONE(float, "f", op, bits(r), "h"(sa))
#define HI(op) ONE(uint16_t, "h", op, half_bits(r), "r"(ia))
#define SH(op) ONE(uint16_t, "h", op, bits(r), "h"(sa))
#define IH(op) ONE(uint32_t, "r", op, bits(r), "h"(sa))
#define HF(op) ONE(uint16_t, "h", op, half_bits(r), "f"(fa))
#define BF(op) ONE(uint16_t, "h", op, bfloat_bits(r), "f"(fa))
#define PFF(op) TWO(uint32_t, "r", op, PAIR(half_bits), "f"(fa), "f"(fb))
#define QFF(op) TWO(uint32_t, "r", op, PAIR(bfloat_bits), "f"(fa), "f"(fb))

// Three operands per thread; out holds n results per operation.
extern "C" __global__ void operations(const uint64_t* in, uint64_t* out, uint32_t n) {
  uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  uint64_t la = in[3 * i], lb = in[3 * i + 1], lc = in[3 * i + 2];
  uint32_t ia = la, ib = lb, ic = lc;
  uint16_t sa = la, sb = lb, sc = lc;
  float fa = __uint_as_float(ia), fb = __uint_as_float(ib), fc = __uint_as_float(ic);
  double da = __longlong_as_double(la), db = __longlong_as_double(lb);
  double dc = __longlong_as_double(lc);
  uint32_t count = i % 71, length = i / 71 % 70;
  uint32_t k = 0;
#include "operations.inc"
}
