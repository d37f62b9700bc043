// Memory of pools, in the order of streams.
#include "longwire/worker_hand_written.h"
#include "server/worker/calls/call_context.h"

namespace longwire::worker {

CUresult Do_lwAllocAsync(CallContext& context, const calls::lwAllocAsync& call,
                         calls::lwAllocAsync::Reply* reply) {
  CUdeviceptr address = 0;
  context.session().graphs().NoteAllocations();
  CUresult result =
      context.driver().cuMemAllocAsync(&address, call.bytes, context.stream()->handle);
  reply->address = address;
  return result;
}

CUresult Do_lwFreeAsync(CallContext& context, const calls::lwFreeAsync& call,
                        calls::lwFreeAsync::Reply*) {
  return context.driver().cuMemFreeAsync(call.address, context.stream()->handle);
}

}  // namespace longwire::worker
