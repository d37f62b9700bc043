/* refused: its map 'keys' is none | LW_ARRAY, LW_HISTOGRAM, LW_RING or LW_SPANS */
#include <longwire/probe.h>

LW_MAP(keys, 2, 8);

LW_PROBE(kernel_exit) int leaves(struct lw_point* point) {
  lw_map_set(&keys, 0, 1);
  return 0;
}
