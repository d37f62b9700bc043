// Events.
#include "longwire/worker_hand_written.h"
#include "server/worker/calls/call_context.h"

namespace longwire::worker {

CUresult Do_lwEventCreate(CallContext& context, const calls::lwEventCreate& call,
                          calls::lwEventCreate::Reply*) {
  return context.session().events().Create(call.event, call.flags);
}

CUresult Do_lwEventDestroy(CallContext& context, const calls::lwEventDestroy& call,
                           calls::lwEventDestroy::Reply*) {
  return context.session().events().Destroy(call.event);
}

CUresult Do_lwEventRecord(CallContext& context, const calls::lwEventRecord& call,
                          calls::lwEventRecord::Reply*) {
  if ((call.flags & CU_EVENT_RECORD_EXTERNAL) != 0 && context.capturing()) {
    return context.session().graphs().CaptureEvent(*context.stream(), call.event, call.flags,
                                                   false);
  }
  return context.session().events().Record(call.event, call.version, call.flags, *context.stream());
}

CUresult Do_lwEventPass(CallContext& context, const calls::lwEventPass& call,
                        calls::lwEventPass::Reply*) {
  return context.session().events().Pass(call.event, call.version);
}

CUresult Do_lwEventElapsed(CallContext& context, const calls::lwEventElapsed& call,
                           calls::lwEventElapsed::Reply* reply) {
  return context.session().events().Elapsed(call.start, call.start_version, call.end,
                                            call.end_version, &reply->milliseconds);
}

}  // namespace longwire::worker
