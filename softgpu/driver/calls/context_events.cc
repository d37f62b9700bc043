// Events of whole contexts and green contexts: recorded behind all that they were given, or waited
// for by all that they will be given.
#include "softgpu/driver/device/green.h"
#include "softgpu/driver/stream/stream.h"

namespace softgpu {
namespace {

// The first stream that captures spoils the call, and the call the capture.
CUresult RefuseWhileCapturing(Context& context) LONGWIRE_REQUIRES(Driver::mutex) {
  for (auto& stream : StreamsOf(context)) {
    if (!stream->capture) continue;
    stream->capture->invalidated = true;
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  return CUDA_SUCCESS;
}

CUresult Record(Context& context, CUevent handle) {
  auto event = Driver::Get().events.Find(handle);
  if (!event || event->context != context.home) return CUDA_ERROR_INVALID_HANDLE;
  auto collector = std::make_shared<Stream>(&context, CU_STREAM_NON_BLOCKING, 0, false);
  base::MutexLock lock(Driver::mutex);
  LONGWIRE_TRY(RefuseWhileCapturing(context));
  event->captured = false;
  event->record = Enqueue(
      *collector, [](int) {}, PendingOf(context));
  AddToContext(collector);
  CloseStream(*collector);
  return CUDA_SUCCESS;
}

CUresult Wait(Context& context, CUevent handle) {
  auto event = Driver::Get().events.Find(handle);
  if (!event) return CUDA_ERROR_INVALID_HANDLE;
  base::MutexLock lock(Driver::mutex);
  LONGWIRE_TRY(RefuseWhileCapturing(context));
  if (event->captured) {
    if (auto capture = event->capture.lock()) capture->invalidated = true;
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  std::erase_if(context.gates, [](auto& gate) { return gate->done(); });
  if (event->record && !event->record->done()) context.gates.push_back(event->record);
  return CUDA_SUCCESS;
}

}  // namespace
}  // namespace softgpu

using namespace softgpu;

CUresult cuCtxRecordEvent(CUcontext handle, CUevent event) {
  Context* context;
  LONGWIRE_TRY(ResolveContext(handle, &context));
  return Record(*context, event);
}

CUresult cuCtxWaitEvent(CUcontext handle, CUevent event) {
  Context* context;
  LONGWIRE_TRY(ResolveContext(handle, &context));
  return Wait(*context, event);
}

CUresult cuGreenCtxRecordEvent(CUgreenCtx handle, CUevent event) {
  std::shared_ptr<GreenContext> green;
  LONGWIRE_TRY(FindGreen(handle, &green));
  return Record(*green->context, event);
}

CUresult cuGreenCtxWaitEvent(CUgreenCtx handle, CUevent event) {
  std::shared_ptr<GreenContext> green;
  LONGWIRE_TRY(FindGreen(handle, &green));
  return Wait(*green->context, event);
}
