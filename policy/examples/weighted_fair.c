/* What the built-in policy weighted_fair does: best-effort sessions take turns wherever two tenants
 * meet; latency-critical ones hold nobody back. */
#include <longwire/policy.h>

LW_HOOK(device_changed) int share_device(struct lw_device *device) {
  device->turns = device->best_effort_tenants > 1;
  if (device->turns || device->latency_critical > 0) {
    device->budget_launches = 1;
    device->budget_us = 250;
    device->copy_slice = 2 << 20;
  }
  return LW_ANSWERED;
}
