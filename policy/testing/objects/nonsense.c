/* Answers that cannot be. */
#include <longwire/policy.h>

LW_HOOK(device_changed) int share(struct lw_device *device) {
  device->turns = 7;
  return LW_ANSWERED;
}

LW_HOOK(session_opened) int open(struct lw_session *session) {
  if (session->session == 66) session->weight = 0;
  return LW_ANSWERED;
}
