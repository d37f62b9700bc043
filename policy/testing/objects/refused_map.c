/* refused: 'huge' | 1 to 65536 */
#include <longwire/policy.h>

LW_MAP(huge, LW_ARRAY, 1 << 30);

LW_HOOK(turn_next) int ask(struct lw_turn *turn) {
  turn->score = lw_map_get(&huge, 1);
  return LW_ANSWERED;
}
