/* refused: call, line 7 of refused_helper.c | no helper 'getenv' */
#include <longwire/policy.h>

extern uint64_t getenv(uint64_t name);

LW_HOOK(turn_next) int call(struct lw_turn *turn) {
  turn->score = getenv(1);
  return LW_ANSWERED;
}
