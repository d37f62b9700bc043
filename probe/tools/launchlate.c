/* How many nanoseconds after the first block of their launch blocks begin. */
#include <longwire/probe.h>

LW_MAP(nanoseconds_late, LW_HISTOGRAM, 64);

LW_PROBE(block_enter) int begins(struct lw_point* point) {
  lw_histogram_add(&nanoseconds_late, lw_since_first());
  return 0;
}
