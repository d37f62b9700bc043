/* refused: count, line 7 of refused_global.c | use a map */
#include <longwire/policy.h>

uint64_t calls;

LW_HOOK(turn_next) int count(struct lw_turn *turn) {
  calls += 1;
  turn->score = calls;
  return LW_ANSWERED;
}
