/* How memory is accessed: bytes that the lanes of a warp move at once, and how often each kind. */
#include <longwire/probe.h>

LW_MAP(bytes_of_accesses, LW_HISTOGRAM, 64);
LW_MAP(loads_stores_atomics, LW_ARRAY, 4);

LW_PROBE(memory_access) int accesses(struct lw_point* point) {
  lw_histogram_add(&bytes_of_accesses, (uint64_t)point->bytes * point->lanes);
  lw_map_add(&loads_stores_atomics, point->access, 1);
  return 0;
}
