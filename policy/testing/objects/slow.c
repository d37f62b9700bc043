/* A hook that takes far more than 10 us. */
#include <longwire/policy.h>

LW_MAP(seen, LW_HASH, 65536);

/* Keys that all collide: each is looked for in as many places as there may be. */
#define COLLIDING 0xf1de83e19937733dUL
#define ONE lw_map_add(&seen, COLLIDING * turn->score++, 1);
#define TEN ONE ONE ONE ONE ONE ONE ONE ONE ONE ONE
#define HUNDRED TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN

LW_HOOK(turn_next) int ask(struct lw_turn *turn) {
  HUNDRED HUNDRED HUNDRED HUNDRED
  return LW_ANSWERED;
}
