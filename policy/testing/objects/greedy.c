/* One tenant's turns, always and for long: the core has to let others in. */
#include <longwire/policy.h>

LW_MAP(favourite, LW_ARRAY, 1);

LW_HOOK(device_changed) int share(struct lw_device *device) {
  device->turns = 1;
  return LW_ANSWERED;
}

LW_HOOK(turn_next) int choose(struct lw_turn *turn) {
  turn->score = turn->tenant == lw_map_get(&favourite, 0);
  return LW_ANSWERED;
}
