/* launchlate where the program is traced: the same, and a span for each block, from when its first
 * thread began until that left. */
#include <longwire/probe.h>

LW_MAP(nanoseconds_late, LW_HISTOGRAM, 64);
LW_MAP(blocks, LW_SPANS, 65536);

LW_PROBE(block_enter) int begins(struct lw_point* point) {
  lw_histogram_add(&nanoseconds_late, lw_since_first());
  return 0;
}

LW_PROBE(block_exit) int ends(struct lw_point* point) {
  lw_span_put(&blocks, point->block, point->began, lw_clock());
  return 0;
}
