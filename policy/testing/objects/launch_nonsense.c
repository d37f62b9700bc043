/* Wants a priority that there is none of. */
#include <longwire/policy.h>

LW_HOOK(launch) int launch_fast(struct lw_launch *launch) {
  launch->priority = 500;
  return LW_ANSWERED;
}
