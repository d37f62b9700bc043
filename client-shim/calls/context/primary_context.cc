// Primary contexts.
#include "base/try.h"
#include "client-shim/calls/context/context_flags.h"
#include "client-shim/context/context.h"
#include "longwire/shim_hand_written.h"

namespace longwire::shim::hand {

CUresult cuDevicePrimaryCtxRetain(CUcontext* pctx, CUdevice dev) {
  Context* context = PrimaryContext(dev);
  if (context == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  LONGWIRE_TRY(ActivatePrimary(context));
  base::MutexLock lock(context->mutex);
  context->retains += 1;
  context->was_reset.store(false);
  *pctx = context->handle;
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice dev) {
  Context* context = PrimaryContext(dev);
  if (context == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  {
    base::MutexLock lock(context->mutex);
    if (context->retains == 0) return CUDA_ERROR_INVALID_CONTEXT;
    if (--context->retains > 0) return CUDA_SUCCESS;
  }
  return EndContext(context);
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice dev) {
  Context* context = PrimaryContext(dev);
  if (context == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  context->was_reset.store(true);
  return EndContext(context);
}

CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice dev, unsigned int flags) {
  Context* context = PrimaryContext(dev);
  if (context == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  if (!AreContextFlags(flags)) return CUDA_ERROR_INVALID_VALUE;
  context->flags.store(flags);
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxGetState(CUdevice dev, unsigned int* flags, int* active) {
  Context* context = PrimaryContext(dev);
  if (context == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  if (flags == nullptr && active == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (flags != nullptr) *flags = context->flags.load();
  if (active != nullptr) *active = context->number.load() != 0 ? 1 : 0;
  return CUDA_SUCCESS;
}

}  // namespace longwire::shim::hand
