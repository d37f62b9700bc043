/* Two maps and two probes, whose names every_refusal_test.cc makes equal. */
#include <longwire/probe.h>

LW_MAP(first, LW_ARRAY, 8);
LW_MAP(secnd, LW_ARRAY, 8);

LW_PROBE(kernel_exit) int leaves(struct lw_point* point) {
  lw_map_set(&first, 0, point->block);
  return 0;
}

LW_PROBE(kernel_exi2) int leaves_too(struct lw_point* point) {
  lw_map_set(&secnd, 0, point->block);
  return 0;
}
