/* Small grids get a high priority, each shape by itself; counts what it is asked. */
#include <longwire/policy.h>

LW_MAP(asked, LW_ARRAY, 1);

LW_HOOK(launch) int by_shape(struct lw_launch *launch) {
  lw_map_add(&asked, 0, 1);
  launch->each = 1;
  if (launch->grid[0] < 4) launch->priority = 3;
  return LW_ANSWERED;
}
