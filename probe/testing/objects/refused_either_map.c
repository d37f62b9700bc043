/* refused: chooses, line 8 of refused_either_map.c | something else than one map */
#include <longwire/probe.h>

LW_MAP(one, LW_ARRAY, 8);
LW_MAP(other, LW_ARRAY, 8);

LW_PROBE(kernel_exit) int chooses(struct lw_point* point) {
  lw_map_set(point->block == 0 ? &one : &other, 0, 1);
  return 0;
}
