/* refused: guess, line 7 of refused_stack.c | never set */
#include <longwire/policy.h>

LW_HOOK(turn_next) int guess(struct lw_turn *turn) {
  volatile uint64_t values[4];
  values[0] = 1;
  turn->score = values[2];
  return LW_ANSWERED;
}
