/* refused: asks, line 7 of refused_helper.c | there is no helper 'lw_guess' */
#include <longwire/probe.h>

extern uint64_t lw_guess(uint64_t value);

LW_PROBE(kernel_exit) int asks(struct lw_point* point) {
  lw_guess(point->block);
  return 0;
}
