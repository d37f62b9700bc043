/* Kernels with a number in the map "urgent" run with that stream priority, and with as much of the
 * first-level cache as can be; all others as their programs say. Asked once for each function:
 *
 *   longwire policy maps urgent_kernels urgent --set kernel:_Z6decodePf=5 */
#include <longwire/policy.h>

LW_MAP(urgent, LW_HASH, 1024);
LW_MAP(asked, LW_HASH, 4096);

LW_HOOK(launch) int how(struct lw_launch *launch) {
  uint64_t priority = lw_map_get(&urgent, launch->kernel);
  lw_map_add(&asked, launch->kernel, 1);
  if (priority == 0 || priority > 100) return LW_NO_OPINION;
  launch->priority = priority;
  launch->shared_memory = 0;
  return LW_ANSWERED;
}
