/* refused: reads_on, line 7 of refused_outside.c | outside of its argument */
#include <longwire/probe.h>

LW_MAP(values, LW_ARRAY, 8);

LW_PROBE(kernel_exit) int reads_on(struct lw_point* point) {
  lw_map_set(&values, 0, *(uint64_t*)((char*)point + sizeof(*point)));
  return 0;
}
