/* What the built-in policy strict_priority does: while a latency-critical session is on a device,
 * best-effort sessions take turns with little in flight, and wait while it has work. */
#include <longwire/policy.h>

LW_HOOK(device_changed) int share_device(struct lw_device *device) {
  if (device->latency_critical == 0) return LW_ANSWERED;
  device->turns = 1;
  device->hold_until = device->busy_until;
  device->budget_launches = 1;
  device->budget_us = 250;
  device->copy_slice = 2 << 20;
  return LW_ANSWERED;
}
