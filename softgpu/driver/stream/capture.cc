#include "softgpu/driver/stream/capture.h"

#include <thread>

#include "softgpu/driver/stream/stream.h"

namespace softgpu {

CUstreamCaptureMode& ThreadCaptureMode() {
  thread_local CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  return mode;
}

CUresult CheckUnsafeInCapture() {
  auto mode = ThreadCaptureMode();
  if (mode == CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_SUCCESS;
  base::MutexLock lock(Driver::mutex);
  for (auto& context : Driver::Get().contexts.All()) {
    for (auto& stream : context->streams) {
      if (!stream->capture || stream->capture->origin != stream.get()) continue;
      Capture& capture = *stream->capture;
      bool own = capture.thread == std::this_thread::get_id() &&
                 capture.mode != CU_STREAM_CAPTURE_MODE_RELAXED;
      bool global =
          capture.mode == CU_STREAM_CAPTURE_MODE_GLOBAL && mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
      if (!own && !global) continue;
      capture.invalidated = true;
      return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
  }
  return CUDA_SUCCESS;
}

CUresult EnterUnsafe(Context** context) {
  LONGWIRE_TRY(context != nullptr ? Enter(context) : Enter());
  return CheckUnsafeInCapture();
}

}  // namespace softgpu
