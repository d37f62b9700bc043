/* threadhist where the program is traced: the same, and a span for each warp. */
#include <longwire/probe.h>

LW_MAP(cycles_of_warps, LW_HISTOGRAM, 64);
LW_MAP(warps, LW_SPANS, 65536);

LW_PROBE(kernel_exit) int ends(struct lw_point* point) {
  lw_histogram_add(&cycles_of_warps, lw_cycles() - point->began_cycles);
  lw_span_put(&warps, point->warp, point->began, lw_clock());
  return 0;
}
