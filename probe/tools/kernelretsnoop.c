/* Warps from their entry into the kernel until they leave: which kernel, which warp, when. */
#include <longwire/probe.h>

LW_MAP(warps, LW_SPANS, 65536);

LW_PROBE(kernel_exit) int leaves(struct lw_point* point) {
  lw_span_put(&warps, point->warp, point->began, lw_clock());
  return 0;
}
