/* What each multiprocessor had to do: warps that began there, and cycles that they ran. */
#include <longwire/probe.h>

LW_MAP(warps_of_sm, LW_ARRAY, 1024);
LW_MAP(cycles_of_sm, LW_ARRAY, 1024);

LW_PROBE(kernel_exit) int ends(struct lw_point* point) {
  lw_map_add(&warps_of_sm, point->sm, 1);
  lw_map_add(&cycles_of_sm, point->sm, lw_cycles() - point->began_cycles);
  return 0;
}
