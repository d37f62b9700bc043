/* refused: 'hook/turn_next' | has several functions */
#include <longwire/policy.h>

LW_HOOK(turn_next) int first(struct lw_turn* turn) {
  turn->score = 1;
  return LW_ANSWERED;
}

LW_HOOK(turn_next) int second(struct lw_turn* turn) {
  turn->score = 2;
  return LW_ANSWERED;
}
