/* Wants memory to stay for two seconds. */
#include <longwire/policy.h>

LW_HOOK(session_runs) int stay_long(struct lw_memory *memory) {
  memory->stay = 2000000000;
  return LW_ANSWERED;
}
