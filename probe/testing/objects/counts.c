/* At every point, how many lanes came by: all threads, however they are split into groups. */
#include <longwire/probe.h>

LW_MAP(lanes_at, LW_ARRAY, 8);
LW_MAP(lanes_accessing, LW_ARRAY, 4);
LW_MAP(last_address, LW_ARRAY, 1);

LW_PROBE(kernel_entry) int enters(struct lw_point* point) {
  lw_map_add(&lanes_at, 0, point->lanes);
  return 0;
}

LW_PROBE(kernel_exit) int leaves(struct lw_point* point) {
  lw_map_add(&lanes_at, 1, point->lanes);
  return 0;
}

LW_PROBE(block_enter) int block_enters(struct lw_point* point) {
  lw_map_add(&lanes_at, 2, 1);
  return 0;
}

LW_PROBE(block_exit) int block_leaves(struct lw_point* point) {
  lw_map_add(&lanes_at, 3, 1);
  return 0;
}

LW_PROBE(function_entry) int called(struct lw_point* point) {
  lw_map_add(&lanes_at, 4, point->lanes);
  return 0;
}

LW_PROBE(function_exit) int returns(struct lw_point* point) {
  lw_map_add(&lanes_at, 5, point->lanes);
  return 0;
}

LW_PROBE(fence) int fences(struct lw_point* point) {
  lw_map_add(&lanes_at, 6, point->lanes);
  return 0;
}

LW_PROBE(memory_access) int accesses(struct lw_point* point) {
  lw_map_add(&lanes_accessing, point->access, point->lanes);
  lw_map_set(&last_address, 0, point->address + point->bytes);
  return 0;
}
