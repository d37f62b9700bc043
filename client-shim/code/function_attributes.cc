// What a server's driver says about a function, and what the program sets.
#include <algorithm>

#include "base/try.h"
#include "client-shim/code/module.h"
#include "client-shim/context/properties.h"
#include "client-shim/session/session.h"

namespace longwire::shim {
namespace {

// The server of the device that a library's function is asked about (-1: of the context's).
Where WhereToAsk(const Context* context, int device) {
  const Where where = context == nullptr ? WhereOfNumber(0) : WhereOf(context);
  ClientSession* session = device < 0 ? where.session : FindDevice(device)->session;
  return session == where.session ? where : Where{0, nullptr, 0, session};
}

}  // namespace

CUresult FunctionAttribute(Function* function, int attribute, int device, int* value) {
  base::MutexLock lock(function->mutex);
  auto known = function->attributes.find(device);
  if (known == function->attributes.end()) {
    lock.Unlock();
    Context* context = nullptr;
    CUresult result = RequireHealthyContext(&context);
    if (result != CUDA_SUCCESS && device < 0) return result;
    calls::lwFunctionAttributes ask;
    const Where where = WhereToAsk(context, device);
    ask.function = function->NumberAt(*where.session);
    ask.device = device < 0 ? -1 : FindDevice(device)->server_ordinal;
    auto answer = where.session->CallAndWait(where, ask);
    if (answer.code != CUDA_SUCCESS) return answer.code;
    lock.Lock();
    known = function->attributes.insert({device, std::move(answer.reply.attributes)}).first;
  }
  calls::FunctionAttributes& all = known->second;
  if (attribute < 0 ||
      static_cast<size_t>(attribute) >= std::min(all.code.size(), all.value.size())) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (all.code[attribute] == CUDA_SUCCESS) *value = all.value[attribute];
  return static_cast<CUresult>(all.code[attribute]);
}

CUresult SetFunctionAttribute(Function* function, int attribute, int value, int device) {
  // What the driver would refuse is refused here: only these can be set, within their limits.
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES: {
      Context* context = nullptr;
      if (RequireContext(&context) != CUDA_SUCCESS) break;
      const Device* on = FindDevice(device < 0 ? context->device : device);
      int shared = 0;
      LONGWIRE_TRY(
          FunctionAttribute(function, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, device, &shared));
      int limit = AttributeOr(*on, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 48 << 10);
      if (value < 0 || value > limit - shared) return CUDA_ERROR_INVALID_VALUE;
      break;
    }
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      if (value < -1 || value > 100) return CUDA_ERROR_INVALID_VALUE;
      break;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH: {
      int compiled = 0;
      if (value < 0) return CUDA_ERROR_INVALID_VALUE;
      LONGWIRE_TRY(FunctionAttribute(function, attribute, device, &compiled));
      if (compiled != 0 && function->clusters != Function::Clusters::kSet) {
        // What was compiled in can be said again, and nothing else.
        if (value != compiled) return CUDA_ERROR_INVALID_VALUE;
        break;
      }
      function->clusters = Function::Clusters::kSet;
      break;
    }
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
      if (value < 0) return CUDA_ERROR_INVALID_VALUE;
      break;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
  Context* context = nullptr;
  CUresult result = RequireHealthyContext(&context);
  if (result != CUDA_SUCCESS && device < 0) return result;
  calls::lwFunctionSetAttribute set;
  const Where where = WhereToAsk(context, device);
  set.function = function->NumberAt(*where.session);
  set.attribute = attribute;
  set.value = value;
  set.device = device < 0 ? -1 : FindDevice(device)->server_ordinal;
  where.session->Submit(where, set);
  base::MutexLock lock(function->mutex);
  for (auto& [known_device, all] : function->attributes) {
    bool same = known_device == device || known_device < 0 || device < 0;
    if (same && static_cast<size_t>(attribute) < all.value.size()) all.value[attribute] = value;
  }
  return CUDA_SUCCESS;
}

}  // namespace longwire::shim
