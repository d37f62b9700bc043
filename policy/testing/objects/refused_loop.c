/* refused: wait_for, line 6 of refused_loop.c | loop */
#include <longwire/policy.h>

LW_HOOK(turn_next) int wait_for(struct lw_turn *turn) {
#pragma clang loop unroll(disable)
  for (uint64_t i = 0; i < turn->weight; ++i) {
    turn->score += turn->session;
    __asm__ volatile("");
  }
  return LW_ANSWERED;
}
