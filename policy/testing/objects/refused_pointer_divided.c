/* refused: look, line 6 of refused_pointer_divided.c | computes with a pointer */
#include <longwire/policy.h>

LW_HOOK(turn_next) int look(struct lw_turn *turn) {
  uint64_t place = (uint64_t)turn;
  place /= 3;
  turn->score = *(uint64_t *)place;
  return LW_ANSWERED;
}
