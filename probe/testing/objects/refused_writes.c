/* refused: changes, line 5 of refused_writes.c | a probe reads it only */
#include <longwire/probe.h>

LW_PROBE(kernel_exit) int changes(struct lw_point* point) {
  point->block = 1;
  return 0;
}
