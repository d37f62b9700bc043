/* refused: it has more than 64 maps | use fewer */
#include <longwire/policy.h>

#define FOUR(n)              \
  LW_MAP(a##n, LW_ARRAY, 1); \
  LW_MAP(b##n, LW_ARRAY, 1); \
  LW_MAP(c##n, LW_ARRAY, 1); \
  LW_MAP(d##n, LW_ARRAY, 1);
FOUR(0)
FOUR(1)
FOUR(2)
FOUR(3)
FOUR(4)
FOUR(5)
FOUR(6)
FOUR(7)
FOUR(8)
FOUR(9)
FOUR(10)
FOUR(11)
FOUR(12)
FOUR(13)
FOUR(14)
FOUR(15)
FOUR(16)

LW_HOOK(turn_next) int ask(struct lw_turn* turn) {
  turn->score = lw_map_get(&a0, 0);
  return LW_ANSWERED;
}
