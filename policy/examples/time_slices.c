/* Time slices by tenant, as a driver with priorities has them: tenants in the map "critical" are
 * latency critical, whatever the configuration says; while they have work on a device the others
 * wait, and those have turns as long as "slices" says, in microseconds:
 *
 *   longwire policy maps time_slices critical --set tenant:serving=1
 *   longwire policy maps time_slices slices --set tenant:batch=20000 */
#include <longwire/policy.h>

LW_MAP(critical, LW_HASH, 1024);
LW_MAP(slices, LW_HASH, 1024);

LW_HOOK(session_opened) int open(struct lw_session *session) {
  session->priority_class =
      lw_map_get(&critical, session->tenant) ? LW_LATENCY_CRITICAL : LW_BEST_EFFORT;
  return LW_ANSWERED;
}

LW_HOOK(device_changed) int share_device(struct lw_device *device) {
  if (device->latency_critical == 0 && device->best_effort_tenants < 2) return LW_ANSWERED;
  device->turns = 1;
  device->hold_until = device->latency_critical > 0 ? device->busy_until : 0;
  device->budget_launches = 1;
  device->budget_us = 250;
  device->copy_slice = 2 << 20;
  return LW_ANSWERED;
}

LW_HOOK(turn_begins) int length(struct lw_turn *turn) {
  uint64_t slice = lw_map_get(&slices, turn->tenant);
  if (slice < 100 || slice > 1000000) return LW_NO_OPINION;
  turn->turn_time = slice * 1000;
  return LW_ANSWERED;
}
