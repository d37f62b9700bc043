/* Tenants with a number in the map "ranks" come first, the highest one before all others, and have
 * longer turns; "turns" counts those that each tenant had. Give ranks while it runs:
 *
 *   longwire policy maps favourite ranks --set tenant:research=2 */
#include <longwire/policy.h>

LW_MAP(ranks, LW_HASH, 1024);
LW_MAP(turns, LW_HASH, 1024);

LW_HOOK(device_changed) int share_device(struct lw_device *device) {
  device->turns = device->best_effort_tenants > 1;
  device->budget_launches = device->turns;
  device->budget_us = device->turns ? 250 : 0;
  return LW_ANSWERED;
}

LW_HOOK(turn_next) int score(struct lw_turn *turn) {
  turn->score = lw_map_get(&ranks, turn->tenant);
  return LW_ANSWERED;
}

LW_HOOK(turn_begins) int length(struct lw_turn *turn) {
  if (lw_map_get(&ranks, turn->tenant) > 0) turn->turn_time = 2 * turn->turn_time;
  if (turn->turn_time > 1000000000) turn->turn_time = 1000000000;
  return LW_ANSWERED;
}

LW_HOOK(turn_ended) int count(struct lw_turn *turn) {
  lw_map_add(&turns, turn->tenant, 1);
  return LW_ANSWERED;
}
