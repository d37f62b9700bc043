/* refused: weigh, line 14 of refused_paths.c | too many paths */
#include <longwire/policy.h>

LW_MAP(bits, LW_ARRAY, 64);

#define BIT(n) \
  if (lw_map_get(&bits, n) != 0) lw_map_set(&bits, n + 32, turn->score += turn->session);
#define FOUR(n) BIT(n) BIT(n + 1) BIT(n + 2) BIT(n + 3)

LW_HOOK(turn_next) int weigh(struct lw_turn *turn) {
  FOUR(0)
  FOUR(4)
  FOUR(8)
  FOUR(12)
  FOUR(16)
  return LW_ANSWERED;
}
