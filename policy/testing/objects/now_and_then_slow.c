/* One run of a hundred takes far more than 10 us. */
#include <longwire/policy.h>

LW_MAP(runs, LW_ARRAY, 1);
LW_MAP(seen, LW_HASH, 65536);

#define ONE turn->score += lw_map_add(&seen, turn->session + turn->score, 1);
#define TEN ONE ONE ONE ONE ONE ONE ONE ONE ONE ONE
#define HUNDRED TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN

LW_HOOK(turn_next) int ask(struct lw_turn *turn) {
  if (lw_map_add(&runs, 0, 1) % 100 == 0) {
    HUNDRED HUNDRED HUNDRED HUNDRED
  }
  return LW_ANSWERED;
}
