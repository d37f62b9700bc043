#include "client-shim/context/limits.h"

#include "base/try.h"
#include "client-shim/context/context.h"
#include "longwire/shim_hand_written.h"
#include "wire/switches.h"

namespace longwire::shim {
namespace {

bool MayCache(CUlimit limit) {
  static const bool never = wire::IsSwitchedOff("kept-limits");
  return !never && limit != CU_LIMIT_STACK_SIZE;
}

// The cache of the context, emptied if a primary context was reset since.
CachedLimits& Cached(Context* context) LONGWIRE_REQUIRES(context->mutex) {
  uint32_t number = context->number.load();
  if (context->limits.number != number) context->limits = {number, context->limits.changes + 1, {}};
  return context->limits;
}

}  // namespace

CUresult GetLimit(CUlimit limit, size_t* value) {
  Context* context = nullptr;
  LONGWIRE_TRY(RequireHealthyContext(&context));
  uint64_t changes = 0;
  {
    base::MutexLock lock(context->mutex);
    CachedLimits& cached = Cached(context);
    auto found = cached.values.find(limit);
    if (found != cached.values.end()) {
      *value = found->second;
      return CUDA_SUCCESS;
    }
    changes = cached.changes;
  }
  CUresult result = forward::cuCtxGetLimit(value, limit);
  if (result != CUDA_SUCCESS || !MayCache(limit)) return result;
  base::MutexLock lock(context->mutex);
  CachedLimits& cached = Cached(context);
  // Another thread may have set it since it was asked for.
  if (cached.changes == changes) cached.values[limit] = *value;
  return CUDA_SUCCESS;
}

CUresult SetLimit(CUlimit limit, size_t value) {
  Context* context = nullptr;
  LONGWIRE_TRY(RequireHealthyContext(&context));
  CUresult result = forward::cuCtxSetLimit(limit, value);
  // The driver may round the value, and changing one limit may change another.
  base::MutexLock lock(context->mutex);
  CachedLimits& cached = Cached(context);
  cached.values.clear();
  ++cached.changes;
  return result;
}

}  // namespace longwire::shim
