/* refused: mixes, line 7 of refused_map.c | which is of another type */
#include <longwire/probe.h>

LW_MAP(sizes, LW_HISTOGRAM, 64);

LW_PROBE(kernel_exit) int mixes(struct lw_point* point) {
  lw_map_set(&sizes, 0, 1);
  return 0;
}
