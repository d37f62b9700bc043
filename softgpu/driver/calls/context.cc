// Contexts: primary and created ones, the calling thread's stack, limits and settings.
#include "softgpu/driver/device/context.h"

#include "softgpu/driver/stream/capture.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"  // cuCtxAttach, cuCtxDetach

namespace softgpu {
namespace {

constexpr unsigned kKnownFlags = CU_CTX_FLAGS_MASK;

CUresult FindPrimary(CUdevice device, Context** context) {
  LONGWIRE_TRY(Enter());
  Device* found = Driver::Get().FindDevice(device);
  if (found == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  *context = found->primary;
  return CUDA_SUCCESS;
}

CUresult CreateContext(CUcontext* context, unsigned flags, CUdevice device, unsigned version) {
  LONGWIRE_TRY(Enter());
  if (context == nullptr || (flags & ~kKnownFlags) != 0) return CUDA_ERROR_INVALID_VALUE;
  if (Driver::Get().FindDevice(device) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  Context* made = nullptr;
  {
    base::MutexLock lock(Driver::mutex);
    made = MakeContext(device, false);
  }
  made->flags = flags;
  made->api_version = version;
  ContextStack().push_back(made);
  *context = Handle(made);
  return CUDA_SUCCESS;
}

}  // namespace
}  // namespace softgpu

using namespace softgpu;

CUresult cuDevicePrimaryCtxRetain(CUcontext* pctx, CUdevice dev) {
  Context* context;
  LONGWIRE_TRY(FindPrimary(dev, &context));
  if (pctx == nullptr) return CUDA_ERROR_INVALID_VALUE;
  base::MutexLock lock(Driver::mutex);
  ++context->references;
  *pctx = Handle(context);
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease(CUdevice dev) {
  Context* context;
  LONGWIRE_TRY(FindPrimary(dev, &context));
  {
    base::MutexLock lock(Driver::mutex);
    if (context->references == 0) return CUDA_ERROR_INVALID_CONTEXT;
    if (--context->references > 0) return CUDA_SUCCESS;
  }
  TearDown(*context);
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxReset(CUdevice dev) {
  Context* context;
  LONGWIRE_TRY(FindPrimary(dev, &context));
  TearDown(*context);
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxSetFlags(CUdevice dev, unsigned int flags) {
  Context* context;
  LONGWIRE_TRY(FindPrimary(dev, &context));
  if ((flags & ~kKnownFlags) != 0) return CUDA_ERROR_INVALID_VALUE;
  context->flags = flags;
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxGetState(CUdevice dev, unsigned int* flags, int* active) {
  Context* context;
  LONGWIRE_TRY(FindPrimary(dev, &context));
  base::MutexLock lock(Driver::mutex);
  if (flags != nullptr) *flags = context->flags;
  if (active != nullptr) *active = context->references > 0;
  return CUDA_SUCCESS;
}

#undef cuCtxCreate
EXPORTED CUresult cuCtxCreate_v2(CUcontext* pctx, unsigned int flags, CUdevice dev) {
  return CreateContext(pctx, flags, dev, 3020);
}
EXPORTED CUresult cuCtxCreate_v3(CUcontext* pctx, CUexecAffinityParam* affinity, int count,
                                 unsigned int flags, CUdevice dev) {
  if (count != 0) return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
  return CreateContext(pctx, flags, dev, 11040);
}
CUresult cuCtxCreate_v4(CUcontext* pctx, CUctxCreateParams* params, unsigned int flags,
                        CUdevice dev) {
  if (params != nullptr && (params->numExecAffinityParams != 0 || params->cigParams != nullptr)) {
    return Refuse("cuCtxCreate_v4 with parameters");
  }
  return CreateContext(pctx, flags, dev, 12050);
}

CUresult cuCtxDestroy(CUcontext ctx) {
  Context* context;
  if (ctx == nullptr) return CUDA_ERROR_INVALID_VALUE;
  LONGWIRE_TRY(ResolveContext(ctx, &context));
  if (context->primary || context->home != context) return CUDA_ERROR_INVALID_CONTEXT;
  TearDown(*context);
  context->alive = false;
  if (CurrentContext() == context) ContextStack().pop_back();
  return CUDA_SUCCESS;
}

CUresult cuCtxAttach(CUcontext* pctx, unsigned int flags) {
  Context* context;
  LONGWIRE_TRY(Enter(&context));
  if (pctx == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  base::MutexLock lock(Driver::mutex);
  ++context->attachments;
  *pctx = Handle(context);
  return CUDA_SUCCESS;
}

CUresult cuCtxDetach(CUcontext ctx) {
  Context* context;
  LONGWIRE_TRY(Enter(&context));
  if (Handle(context) != ctx) return CUDA_ERROR_INVALID_CONTEXT;
  {
    base::MutexLock lock(Driver::mutex);
    if (context->primary && context->attachments == 1) return CUDA_ERROR_INVALID_CONTEXT;
    if (--context->attachments > 0) return CUDA_SUCCESS;
  }
  return cuCtxDestroy(ctx);
}

CUresult cuCtxPushCurrent(CUcontext ctx) {
  Context* context;
  if (ctx == nullptr) return CUDA_ERROR_INVALID_VALUE;
  LONGWIRE_TRY(ResolveContext(ctx, &context));
  ContextStack().push_back(context);
  return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent(CUcontext* pctx) {
  LONGWIRE_TRY(Enter());
  if (ContextStack().empty()) return CUDA_ERROR_INVALID_CONTEXT;
  if (pctx != nullptr) *pctx = Handle(ContextStack().back());
  ContextStack().pop_back();
  return CUDA_SUCCESS;
}

// Replaces the top of the stack; null pops it. A primary context may come before its first retain.
CUresult cuCtxSetCurrent(CUcontext ctx) {
  Context* context = nullptr;
  if (ctx == nullptr) {
    LONGWIRE_TRY(Enter());
  } else {
    LONGWIRE_TRY(ResolveContext(ctx, &context));
  }
  if (!ContextStack().empty()) ContextStack().pop_back();
  if (context != nullptr) ContextStack().push_back(context);
  return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext* pctx) {
  LONGWIRE_TRY(Enter());
  if (pctx == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *pctx = Handle(CurrentContext());
  return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice* device) { return cuCtxGetDevice_v2(device, nullptr); }
CUresult cuCtxGetDevice_v2(CUdevice* device, CUcontext ctx) {
  Context* context;
  LONGWIRE_TRY(ResolveContext(ctx, &context));
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *device = context->device;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetFlags(unsigned int* flags) {
  Context* context;
  LONGWIRE_TRY(Enter(&context));
  if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *flags = context->flags;
  return CUDA_SUCCESS;
}

CUresult cuCtxSetFlags(unsigned int flags) {
  Context* context;
  LONGWIRE_TRY(Enter(&context));
  if ((flags & ~kKnownFlags) != 0) return CUDA_ERROR_INVALID_VALUE;
  context->flags = flags;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetId(CUcontext ctx, unsigned long long* id) {
  Context* context;
  LONGWIRE_TRY(ResolveContext(ctx, &context));
  if (id == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *id = context->id;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetApiVersion(CUcontext ctx, unsigned int* version) {
  Context* context;
  LONGWIRE_TRY(ResolveContext(ctx, &context));
  if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *version = context->api_version;
  return CUDA_SUCCESS;
}

CUresult cuCtxSynchronize() { return cuCtxSynchronize_v2(nullptr); }

CUresult cuCtxSetLimit(CUlimit limit, size_t value) {
  Context* context;
  LONGWIRE_TRY(EnterUnsafe(&context));
  if (limit < 0 || limit >= CU_LIMIT_MAX) return CUDA_ERROR_INVALID_VALUE;
  if (context->limits[limit] == 0) return CUDA_ERROR_UNSUPPORTED_LIMIT;
  context->limits[limit] = value;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetLimit(size_t* value, CUlimit limit) {
  Context* context;
  LONGWIRE_TRY(Enter(&context));
  if (value == nullptr || limit < 0 || limit >= CU_LIMIT_MAX) return CUDA_ERROR_INVALID_VALUE;
  if (context->limits[limit] == 0) return CUDA_ERROR_UNSUPPORTED_LIMIT;
  *value = context->limits[limit];
  return CUDA_SUCCESS;
}

CUresult cuCtxGetCacheConfig(CUfunc_cache* config) {
  Context* context;
  LONGWIRE_TRY(Enter(&context));
  if (config == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *config = static_cast<CUfunc_cache>(context->cache_config.load());
  return CUDA_SUCCESS;
}

CUresult cuCtxSetCacheConfig(CUfunc_cache config) {
  Context* context;
  LONGWIRE_TRY(Enter(&context));
  context->cache_config = config;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetSharedMemConfig(CUsharedconfig* config) {
  LONGWIRE_TRY(Enter());
  if (config == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *config = CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE;
  return CUDA_SUCCESS;
}
CUresult cuCtxSetSharedMemConfig(CUsharedconfig config) { return Enter(); }
CUresult cuCtxResetPersistingL2Cache() {
  Context* context;
  return Enter(&context);
}

// Contexts use all multiprocessors: there is no affinity to ask for.
CUresult cuCtxGetExecAffinity(CUexecAffinityParam* affinity, CUexecAffinityType) {
  Context* context;
  LONGWIRE_TRY(Enter(&context));
  if (affinity == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
}

CUresult cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  LONGWIRE_TRY(Enter());
  if (least != nullptr) *least = 0;
  if (greatest != nullptr) *greatest = -5;
  return CUDA_SUCCESS;
}
