/* Swapping by priority: memory of tenants with the lowest number in the map "priorities" leaves
 * first, the least recently used one among equals. Who has one also stays as long as that says, in
 * milliseconds, once its memory is back; "came_back" counts how often each tenant's had to.
 *
 *   longwire policy maps priority_swap priorities --set tenant:research=500 */
#include <longwire/policy.h>

#define LOWEST_FIRST 0xffffffffUL
#define MOST_MS 1000

LW_MAP(priorities, LW_HASH, 1024);
LW_MAP(came_back, LW_HASH, 1024);

LW_HOOK(evict_next) int score(struct lw_memory *memory) {
  memory->score = LOWEST_FIRST - lw_map_get(&priorities, memory->tenant);
  return LW_ANSWERED;
}

LW_HOOK(session_runs) int stay(struct lw_memory *memory) {
  uint64_t milliseconds = lw_map_get(&priorities, memory->tenant);
  lw_map_add(&came_back, memory->tenant, 1);
  if (milliseconds > MOST_MS) milliseconds = MOST_MS;
  memory->stay = milliseconds * 1000000;
  return LW_ANSWERED;
}
