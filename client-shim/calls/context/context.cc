// Contexts.
#include "client-shim/context/context.h"

#include "base/try.h"
#include "client-shim/calls/context/context_flags.h"
#include "client-shim/context/context_events.h"
#include "client-shim/context/current_context.h"
#include "client-shim/context/limits.h"
#include "client-shim/context/properties.h"
#include "client-shim/session/session.h"
#include "client-shim/stream/capture.h"
#include "client-shim/stream/program_streams.h"
#include "client-shim/support/threads.h"
#include "longwire/shim_hand_written.h"

namespace longwire::shim::hand {
namespace {

CUresult Create(CUcontext* pctx, unsigned flags, CUdevice dev) {
  if (FindDevice(dev) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  if (!AreContextFlags(flags)) return CUDA_ERROR_INVALID_VALUE;
  Context* context = nullptr;
  LONGWIRE_TRY(NewContext(dev, flags, &context));
  ThisThread().contexts.push_back(context);
  *pctx = context->handle;
  return CUDA_SUCCESS;
}

CUresult Current(Context** context) { return RequireContext(context); }

CUresult WithContextAndEvent(CUcontext handle, CUevent event_handle,
                             CUresult (*act)(Context*, Event*)) {
  Context* context = FindContext(handle);
  if (context == nullptr || context->number.load() == 0) return CUDA_ERROR_INVALID_CONTEXT;
  Event* event = FindEvent(event_handle);
  if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  CUresult result = TakeError(context->home);
  return result == CUDA_SUCCESS ? act(context, event) : result;
}

}  // namespace

CUresult cuCtxCreate_v2(CUcontext* pctx, unsigned int flags, CUdevice dev) {
  return Create(pctx, flags, dev);
}

CUresult cuCtxCreate_v3(CUcontext* pctx, CUexecAffinityParam* paramsArray, int numParams,
                        unsigned int flags, CUdevice dev) {
  if (numParams != 0) return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
  return Create(pctx, flags, dev);
}

CUresult cuCtxCreate_v4(CUcontext* pctx, CUctxCreateParams* ctxCreateParams, unsigned int flags,
                        CUdevice dev) {
  if (ctxCreateParams != nullptr &&
      (ctxCreateParams->numExecAffinityParams != 0 || ctxCreateParams->cigParams != nullptr)) {
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  return Create(pctx, flags, dev);
}

CUresult cuCtxDestroy_v2(CUcontext ctx) {
  if (ctx == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Context* context = Contexts().Find(reinterpret_cast<uint64_t>(ctx));
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (context->primary || context->green != nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (!Contexts().Retire(context)) return CUDA_ERROR_INVALID_CONTEXT;
  std::vector<Context*>& stack = ThisThread().contexts;
  if (!stack.empty() && stack.back() == context) stack.pop_back();
  return EndContext(context);
}

CUresult cuCtxPushCurrent_v2(CUcontext ctx) {
  Context* context = Contexts().Find(reinterpret_cast<uint64_t>(ctx));
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  ThisThread().contexts.push_back(context);
  return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent_v2(CUcontext* pctx) {
  std::vector<Context*>& stack = ThisThread().contexts;
  if (stack.empty()) return CUDA_ERROR_INVALID_CONTEXT;
  if (pctx != nullptr) *pctx = stack.back()->handle;
  stack.pop_back();
  return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext ctx) {
  std::vector<Context*>& stack = ThisThread().contexts;
  if (ctx == nullptr) {
    if (!stack.empty()) stack.pop_back();
    return CUDA_SUCCESS;
  }
  Context* context = Contexts().Find(reinterpret_cast<uint64_t>(ctx));
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (stack.empty()) {
    stack.push_back(context);
  } else {
    stack.back() = context;
  }
  return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext* pctx) {
  *pctx = CurrentContext();
  return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice* device) {
  std::vector<Context*>& stack = ThisThread().contexts;
  if (stack.empty()) return CUDA_ERROR_INVALID_CONTEXT;
  *device = stack.back()->device;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice_v2(CUdevice* device, CUcontext ctx) {
  return ContextDevice(ctx, device) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult cuCtxGetFlags(unsigned int* flags) {
  Context* context = nullptr;
  CUresult result = Current(&context);
  if (result == CUDA_SUCCESS) *flags = context->flags.load();
  return result;
}

CUresult cuCtxSetFlags(unsigned int flags) {
  if (!AreContextFlags(flags)) return CUDA_ERROR_INVALID_VALUE;
  Context* context = nullptr;
  CUresult result = Current(&context);
  if (result == CUDA_SUCCESS) context->flags.store(flags);
  return result;
}

CUresult cuCtxGetId(CUcontext ctx, unsigned long long* ctxId) {
  uint64_t id = 0;
  if (!ContextUniqueId(ctx, &id)) return CUDA_ERROR_INVALID_CONTEXT;
  *ctxId = id;
  return CUDA_SUCCESS;
}

CUresult cuCtxSynchronize() {
  Context* context = nullptr;
  CUresult result = RequireHealthyContext(&context);
  if (result == CUDA_SUCCESS) result = RequireOwner(&context);
  if (result == CUDA_SUCCESS) result = RefuseContextWhileCapturing(context);
  return result == CUDA_SUCCESS ? SynchronizeContext(context) : result;
}

CUresult cuCtxSynchronize_v2(CUcontext ctx) {
  if (ctx == nullptr) return hand::cuCtxSynchronize();
  Context* context = FindContext(ctx);
  if (context == nullptr || context->number.load() == 0) return CUDA_ERROR_INVALID_CONTEXT;
  CUresult result = RefuseContextWhileCapturing(context);
  return result == CUDA_SUCCESS ? SynchronizeContext(context) : result;
}

CUresult cuCtxRecordEvent(CUcontext hCtx, CUevent hEvent) {
  return WithContextAndEvent(hCtx, hEvent, RecordContext);
}

CUresult cuCtxWaitEvent(CUcontext hCtx, CUevent hEvent) {
  return WithContextAndEvent(hCtx, hEvent, MakeContextWait);
}

CUresult cuCtxSetLimit(CUlimit limit, size_t value) { return SetLimit(limit, value); }

CUresult cuCtxGetLimit(size_t* pvalue, CUlimit limit) { return GetLimit(limit, pvalue); }

CUresult cuCtxGetCacheConfig(CUfunc_cache* pconfig) {
  Context* context = nullptr;
  CUresult result = Current(&context);
  if (result == CUDA_SUCCESS) *pconfig = context->cache_config.load();
  return result;
}

CUresult cuCtxSetCacheConfig(CUfunc_cache config) {
  if (config < CU_FUNC_CACHE_PREFER_NONE || config > CU_FUNC_CACHE_PREFER_EQUAL) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  Context* context = nullptr;
  CUresult result = Current(&context);
  // A preference: devices since Volta choose for themselves.
  if (result == CUDA_SUCCESS) context->cache_config.store(config);
  return result;
}

CUresult cuCtxGetSharedMemConfig(CUsharedconfig* pConfig) {
  *pConfig = CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE;
  Context* context = nullptr;
  return Current(&context);
}

CUresult cuCtxSetSharedMemConfig(CUsharedconfig config) {
  if (config > CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE) return CUDA_ERROR_INVALID_VALUE;
  Context* context = nullptr;
  return Current(&context);  // without effect on every device since Maxwell
}

CUresult cuCtxGetApiVersion(CUcontext ctx, unsigned int* version) {
  if (FindContext(ctx) == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  *version = 3020;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetStreamPriorityRange(int* leastPriority, int* greatestPriority) {
  Context* context = nullptr;
  LONGWIRE_TRY(Current(&context));
  if (leastPriority != nullptr) *leastPriority = context->session->opened().stream_priority_least;
  if (greatestPriority != nullptr) {
    *greatestPriority = context->session->opened().stream_priority_greatest;
  }
  return CUDA_SUCCESS;
}

CUresult cuCtxAttach(CUcontext* pctx, unsigned int flags) {
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  Context* context = nullptr;
  LONGWIRE_TRY(Current(&context));
  base::MutexLock lock(context->mutex);
  context->attachments += 1;
  *pctx = context->handle;
  return CUDA_SUCCESS;
}

// The last one ends the context; a primary one is ended by those who retain it alone.
CUresult cuCtxDetach(CUcontext ctx) {
  Context* context = nullptr;
  LONGWIRE_TRY(Current(&context));
  if (context->handle != ctx) return CUDA_ERROR_INVALID_CONTEXT;
  {
    base::MutexLock lock(context->mutex);
    if (context->primary && context->attachments == 1) return CUDA_ERROR_INVALID_CONTEXT;
    if (--context->attachments > 0) return CUDA_SUCCESS;
  }
  return hand::cuCtxDestroy_v2(ctx);
}

}  // namespace longwire::shim::hand
