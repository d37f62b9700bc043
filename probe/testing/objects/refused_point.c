/* refused: starts, line 4 of refused_point.c | there is no point 'kernel_middle' */
#include <longwire/probe.h>

LW_PROBE(kernel_middle) int starts(struct lw_point* point) { return 0; }
