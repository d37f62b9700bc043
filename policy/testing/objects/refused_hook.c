/* refused: think | no hook 'every_launch' */
#include <longwire/policy.h>

LW_HOOK(every_launch) int think(struct lw_turn *turn) {
  turn->score = 1;
  return LW_ANSWERED;
}
