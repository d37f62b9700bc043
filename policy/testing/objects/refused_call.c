/* refused: ask, line 9 of refused_call.c | make it static inline */
#include <longwire/policy.h>

__attribute__((noinline)) uint64_t twice(uint64_t value) {
  return 2 * value + (value >> 1);
}

LW_HOOK(turn_next) int ask(struct lw_turn *turn) {
  turn->score = twice(turn->session);
  return LW_ANSWERED;
}
