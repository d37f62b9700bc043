#include "softgpu/driver/device/green.h"

#include "softgpu/driver/stream/stream.h"

namespace softgpu {

CUgreenCtx GreenHandle(const Context& context) {
  return reinterpret_cast<CUgreenCtx>(context.green);
}

CUresult FindGreen(CUgreenCtx handle, std::shared_ptr<GreenContext>* green) {
  LONGWIRE_TRY(Enter());
  *green = Driver::Get().greens.Find(handle);
  if (!*green) return CUDA_ERROR_INVALID_CONTEXT;
  return (*green)->context->alive ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

void EndGreenContext(GreenContext& green) {
  Context& context = *green.context;
  SynchronizeContext(context);
  base::MutexLock lock(Driver::mutex);
  for (auto& stream : context.streams) {
    stream->capture.reset();
    CloseStream(*stream);
  }
  context.streams.clear();
  std::erase(context.home->parts, &context);
  context.alive = false;
}

void EndGreenContextsOf(Context& home) {
  std::vector<Context*> parts;
  {
    base::MutexLock lock(Driver::mutex);
    parts = home.parts;
  }
  for (Context* part : parts) EndGreenContext(*part->green);
}

}  // namespace softgpu
