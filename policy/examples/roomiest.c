/* A new session gets the device with most free memory; the map "room" has what each one had. */
#include <longwire/policy.h>

LW_MAP(room, LW_ARRAY, 64);

LW_HOOK(place) int score(struct lw_place *place) {
  lw_map_set(&room, place->device, place->free_bytes);
  place->score = place->free_bytes;
  return LW_ANSWERED;
}
