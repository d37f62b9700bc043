// Every conversion of narrowings.inc on two values for each thread.
#include <cstdint>

#define ONE(op)                               \
  {                                           \
    uint16_t r;                               \
    asm(#op " %0, %1;" : "=h"(r) : "f"(low)); \
    out[n * k++ + i] = r;                     \
  }
#define WORD(op)                              \
  {                                           \
    uint32_t r;                               \
    asm(#op " %0, %1;" : "=r"(r) : "f"(low)); \
    out[n * k++ + i] = r;                     \
  }
#define PAIR(op)                                             \
  {                                                          \
    uint32_t r;                                              \
    asm(#op " %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low)); \
    out[n * k++ + i] = r;                                    \
  }

// out holds n results per conversion.
extern "C" __global__ void narrowings(const float* in, uint32_t* out, uint32_t n) {
  uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float low = in[i], high = in[n - 1 - i];
  uint32_t k = 0;
#include "narrowings.inc"
}
