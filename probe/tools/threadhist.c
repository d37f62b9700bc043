/* How many cycles warps run, from their entry into the kernel to their exit. */
#include <longwire/probe.h>

LW_MAP(cycles_of_warps, LW_HISTOGRAM, 64);

LW_PROBE(kernel_exit) int ends(struct lw_point* point) {
  lw_histogram_add(&cycles_of_warps, lw_cycles() - point->began_cycles);
  return 0;
}
