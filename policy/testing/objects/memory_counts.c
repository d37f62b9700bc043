/* Counts what it is told of memory. */
#include <longwire/policy.h>

LW_MAP(bytes, LW_HASH, 64);    /* of each tenant, now */
LW_MAP(accessed, LW_HASH, 64); /* how often */
LW_MAP(runs, LW_ARRAY, 4);     /* of the last session_runs: bytes away, launches, the first kernel */

LW_HOOK(region_added) int added(struct lw_memory *memory) {
  lw_map_add(&bytes, memory->tenant, memory->bytes);
  return LW_ANSWERED;
}

LW_HOOK(region_removed) int removed(struct lw_memory *memory) {
  lw_map_add(&bytes, memory->tenant, -memory->bytes);
  return LW_ANSWERED;
}

LW_HOOK(region_accessed) int used(struct lw_memory *memory) {
  lw_map_add(&accessed, memory->tenant, 1);
  return LW_ANSWERED;
}

LW_HOOK(session_runs) int run(struct lw_memory *memory) {
  lw_map_set(&runs, 0, memory->bytes);
  lw_map_set(&runs, 1, memory->launches);
  lw_map_set(&runs, 2, memory->kernel[0]);
  lw_map_add(&runs, 3, 1);
  return LW_NO_OPINION;
}
