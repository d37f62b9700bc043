// Memory of pools, in the order of streams.
#include "longwire/worker_hand_written.h"
#include "server/worker/calls/call_context.h"

namespace longwire::worker {

// What the driver says: the record's flag is only what the client claims.
static bool IsCaptured(CallContext& context) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  CUstream stream = context.stream()->handle;
  return context.capturing() &&
         context.driver().cuStreamIsCapturing(stream, &status) == CUDA_SUCCESS &&
         status == CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

CUresult Do_lwAllocAsync(CallContext& context, const calls::lwAllocAsync& call,
                         calls::lwAllocAsync::Reply* reply) {
  CUdeviceptr address = 0;
  CUresult result = CUDA_SUCCESS;
  const Stream& stream = *context.stream();
  context.session().graphs().NoteAllocations();
  if (IsCaptured(context)) {
    result = context.driver().cuMemAllocAsync(&address, call.bytes, stream.handle);
  } else {
    result = context.session().stream_allocations().Allocate(stream, context.call().position,
                                                             call.bytes, &address);
  }
  reply->address = address;
  return result;
}

CUresult Do_lwFreeAsync(CallContext& context, const calls::lwFreeAsync& call,
                        calls::lwFreeAsync::Reply*) {
  Stream& stream = *context.stream();
  CUresult result = context.driver().cuMemFreeAsync(call.address, stream.handle);
  if (result != CUDA_SUCCESS || context.capturing()) return result;
  WorkerSession& session = context.session();
  int32_t device = stream.context->device;
  uint64_t bytes = session.stream_allocations().Free(device, call.address);
  stream.actions.push_back([&session, device, bytes](bool) {
    if (bytes != 0) session.stream_allocations().Freed(device, bytes);
    if (bytes == 0) session.graphs().MemoryFreed();
  });
  return result;
}

}  // namespace longwire::worker
