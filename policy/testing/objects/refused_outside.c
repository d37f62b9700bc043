/* refused: read_on, line 5 of refused_outside.c | outside of its argument */
#include <longwire/policy.h>

LW_HOOK(turn_next) int read_on(struct lw_turn *turn) {
  turn->score = *(uint64_t *)((char *)turn + sizeof(*turn));
  return LW_ANSWERED;
}
