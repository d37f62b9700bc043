/* Each session's terms by its tenant: 1 latency critical, else the weight. */
#include <longwire/policy.h>

LW_MAP(terms, LW_HASH, 16);
LW_MAP(busy, LW_HASH, 16);
LW_MAP(closed, LW_ARRAY, 1);

LW_HOOK(session_opened) int open(struct lw_session *session) {
  uint64_t told = lw_map_get(&terms, session->tenant);
  if (told == 0) return LW_NO_OPINION;
  if (told == 1) session->priority_class = LW_LATENCY_CRITICAL;
  if (told > 1) session->weight = told;
  return LW_ANSWERED;
}

LW_HOOK(session_closed) int close(struct lw_session *session) {
  lw_map_add(&closed, 0, 1);
  return LW_ANSWERED;
}

LW_HOOK(queue_changed) int change(struct lw_queue *queue) {
  lw_map_set(&busy, queue->session, queue->busy);
  return LW_ANSWERED;
}
