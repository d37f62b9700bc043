/* refused: look, line 5 of refused_pointer.c | */
#include <longwire/policy.h>

LW_HOOK(turn_next) int look(struct lw_turn *turn) {
  turn->score = *(uint64_t *)turn->session;
  return LW_ANSWERED;
}
