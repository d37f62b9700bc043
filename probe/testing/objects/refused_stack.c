/* refused: guesses, line 9 of refused_stack.c | never set */
#include <longwire/probe.h>

LW_MAP(values, LW_ARRAY, 8);

LW_PROBE(kernel_exit) int guesses(struct lw_point* point) {
  volatile uint64_t parts[4];
  parts[0] = 1;
  lw_map_set(&values, 0, parts[2]);
  return 0;
}
