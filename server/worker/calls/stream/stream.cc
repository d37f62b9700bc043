// Streams, and what waits in them for events.
#include "base/try.h"
#include "codegen/runtime/convert.h"
#include "longwire/worker_hand_written.h"
#include "server/worker/calls/call_context.h"
#include "server/worker/code/loading.h"

namespace longwire::worker {

CUresult Do_lwStreamCreate(CallContext& context, const calls::lwStreamCreate& call,
                           calls::lwStreamCreate::Reply*) {
  WorkerSession& session = context.session();
  if (context.context() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (call.kind > 3) return CUDA_ERROR_INVALID_VALUE;
  auto stream = std::make_shared<Stream>();
  stream->id = call.stream;
  stream->kind = static_cast<StreamKind>(call.kind);
  stream->context = context.context();
  bool legacy = stream->kind == StreamKind::kLegacy;
  if (legacy && stream->context->legacy != nullptr) return CUDA_ERROR_INVALID_VALUE;
  stream->handle = CU_STREAM_LEGACY;
  if (!legacy) {
    unsigned flags =
        stream->kind == StreamKind::kNonBlocking ? CU_STREAM_NON_BLOCKING : CU_STREAM_DEFAULT;
    LONGWIRE_TRY(
        context.driver().cuStreamCreateWithPriority(&stream->handle, flags, call.priority));
  }
  bool attached = session.timelines().Attach(*stream);
  if (!attached || !session.streams.Insert(call.stream, stream)) {
    if (attached) session.timelines().Detach(*stream);
    if (!legacy) context.driver().cuStreamDestroy_v2(stream->handle);
    return attached ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_OUT_OF_MEMORY;
  }
  session.issuer().Add(stream);
  return CUDA_SUCCESS;
}

// On a helper, after the stream drained and left the log thread's lists.
CUresult Do_lwStreamDestroy(CallContext& context, const calls::lwStreamDestroy& call,
                            calls::lwStreamDestroy::Reply*) {
  WorkerSession& session = context.session();
  auto stream = session.streams.Take(call.stream);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  base::MutexLock lock(stream->issue_mutex);
  session.chains().Forget(*stream);
  session.timelines().Detach(*stream);
  if (stream->kind == StreamKind::kLegacy || stream->context->failed != 0) return CUDA_SUCCESS;
  session.SetContext(*stream->context);
  return context.driver().cuStreamDestroy_v2(stream->handle);
}

CUresult Do_lwStreamWaitEvent(CallContext& context, const calls::lwStreamWaitEvent& call,
                              calls::lwStreamWaitEvent::Reply*) {
  if ((call.flags & CU_EVENT_WAIT_EXTERNAL) != 0 && context.capturing()) {
    return context.session().graphs().CaptureEvent(*context.stream(), call.event, call.flags, true);
  }
  return context.session().events().Wait(call.event, call.version, call.flags, *context.stream());
}

CUresult Do_lwStreamWanted(CallContext& context, const calls::lwStreamWanted& call,
                           calls::lwStreamWanted::Reply*) {
  WorkerSession& session = context.session();
  auto stream = session.streams.Find(call.stream);
  // The stream may be gone already; then it has drained and said so.
  if (stream == nullptr) return CUDA_SUCCESS;
  session.issuer().MarkAt(*stream, call.position);
  uint64_t reached = session.timelines().Want(*stream, call.position);
  if (reached != 0) session.down().Progress(call.stream, reached);
  return CUDA_SUCCESS;
}

CUresult Do_cuStreamSetAttribute(CallContext& context, const calls::cuStreamSetAttribute& call,
                                 calls::cuStreamSetAttribute::Reply*) {
  auto attribute = static_cast<CUstreamAttrID>(call.attr);
  if (HoldsHandles(attribute)) return CUDA_ERROR_INVALID_VALUE;
  CUstreamAttrValue value{};
  calls::Convert(call.param, &value);
  return context.driver().cuStreamSetAttribute(context.driver_stream(), attribute, &value);
}

}  // namespace longwire::worker
