/* What operations give; each thread is a warp of its own group: blocks have one thread. */
#include "arithmetic.h"

#include <longwire/probe.h>

LW_MAP(results, LW_ARRAY, 4096);
LW_MAP(stacked, LW_ARRAY, 128);
LW_MAP(fields, LW_ARRAY, 128);

#define SET(n, value) lw_map_set(&results, b* OPERATION_COUNT + n, value);

LW_PROBE(kernel_entry) int computes(struct lw_point* point) {
  uint64_t b = point->block;
  uint64_t a = point->block * 3 + 1;
  OPERATIONS(a, b)
  return 0;
}

/* Bytes, halves and words of the stack, and parts of fields. */
LW_PROBE(kernel_exit) int keeps(struct lw_point* point) {
  volatile uint64_t whole = 0x1122334455667788 + point->block;
  volatile uint8_t byte = point->block * 5;
  volatile uint16_t half = point->block * 1000;
  volatile uint32_t word = point->block * 0x1234567;
  lw_map_set(&stacked, point->block,
             whole ^ (uint64_t)byte << 8 ^ (uint64_t)half << 20 ^ (uint64_t)word << 30);
  lw_map_set(&fields, point->block,
             *(volatile uint8_t*)&point->block + ((uint64_t)point->thread << 32) +
                 ((uint64_t)point->warp << 16));
  return 0;
}
