/* refused: waits, line 6 of refused_loop.c | loop */
#include <longwire/probe.h>

LW_PROBE(kernel_exit) int waits(struct lw_point* point) {
#pragma clang loop unroll(disable)
  for (uint64_t i = 0; i < point->block; ++i) {
    __asm__ volatile("");
  }
  return 0;
}
