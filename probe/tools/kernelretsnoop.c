/* When warps leave kernels: which kernel, which warp, the device's clock, nanoseconds it ran. */
#include <longwire/probe.h>

LW_MAP(exits, LW_RING, 65536);

LW_PROBE(kernel_exit) int leaves(struct lw_point* point) {
  uint64_t now = lw_clock();
  lw_ring_put(&exits, point->kernel, point->warp, now, now - point->began);
  return 0;
}
