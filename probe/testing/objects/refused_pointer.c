/* refused: follows, line 7 of refused_pointer.c | a number as a pointer */
#include <longwire/probe.h>

LW_MAP(values, LW_ARRAY, 8);

LW_PROBE(memory_access) int follows(struct lw_point* point) {
  lw_map_set(&values, 0, *(uint64_t*)point->address);
  return 0;
}
