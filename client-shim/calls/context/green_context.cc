// Green contexts, and the parts of a device that they are made of.
#include "client-shim/context/green_context.h"

#include <algorithm>
#include <cstring>

#include "base/try.h"
#include "client-shim/context/context_events.h"
#include "client-shim/context/properties.h"
#include "client-shim/entry/forwarding.h"
#include "client-shim/session/session.h"
#include "client-shim/stream/stream.h"
#include "longwire/calls.h"
#include "longwire/shim_hand_written.h"

namespace longwire::shim::hand {
namespace {

// A split or descriptor names no more parts than a device has multiprocessors.
constexpr unsigned kMaxParts = 4096;

// Parts of a device belong to no context; the current one, if there is one, says how it is.
template <class Call>
Answer<Call> Ask(const Call& call) {
  Where where;
  Answer<Call> answer;
  answer.code = ForwardTo(0, &where);
  if (answer.code != CUDA_SUCCESS) return answer;
  return where.session->CallAndWait(where, call, call.EncodedBytes());
}

bool Copy(std::span<const std::byte> bytes, CUdevResource* to, size_t count) {
  if (bytes.size() != count * sizeof *to) return false;
  if (count != 0) std::memcpy(to, bytes.data(), bytes.size());
  return true;
}

CUresult WithEvent(CUgreenCtx handle, CUevent event_handle, CUresult (*act)(Context*, Event*)) {
  Context* green = FindGreenContext(handle);
  if (green == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  Event* event = FindEvent(event_handle);
  if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  CUresult result = TakeError(green->home);
  return result == CUDA_SUCCESS ? act(green, event) : result;
}

}  // namespace

CUresult cuCtxGetDevResource(CUcontext hCtx, CUdevResource* resource, CUdevResourceType type) {
  Context* context = FindContext(hCtx);
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  CUresult result = context->primary ? ActivatePrimary(context) : CUDA_SUCCESS;
  return result == CUDA_SUCCESS ? forward::cuCtxGetDevResource(context->handle, resource, type)
                                : result;
}

CUresult cuGreenCtxGetDevResource(CUgreenCtx hCtx, CUdevResource* resource,
                                  CUdevResourceType type) {
  if (FindGreenContext(hCtx) == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  return forward::cuGreenCtxGetDevResource(hCtx, resource, type);
}

CUresult cuDevSmResourceSplitByCount(CUdevResource* result, unsigned int* nbGroups,
                                     const CUdevResource* input, CUdevResource* remaining,
                                     unsigned int useFlags, unsigned int minCount) {
  calls::lwSplitResource split;
  split.input = std::as_bytes(std::span(input, 1));
  split.query = result == nullptr;
  split.groups = std::min(split.query ? 0 : *nbGroups, kMaxParts);
  split.flags = useFlags;
  split.least = minCount;
  auto answer = Ask(split);
  if (answer.code != CUDA_SUCCESS) return answer.code;
  size_t made = split.query ? 0 : answer.reply.groups;
  if (answer.reply.groups > kMaxParts || made > split.groups ||
      !Copy(answer.reply.group, result, made))
    return CUDA_ERROR_UNKNOWN;
  if (remaining != nullptr && !Copy(answer.reply.remaining, remaining, 1)) {
    return CUDA_ERROR_UNKNOWN;
  }
  *nbGroups = answer.reply.groups;
  return CUDA_SUCCESS;
}

CUresult cuDevResourceGenerateDesc(CUdevResourceDesc* phDesc, CUdevResource* resources,
                                   unsigned int nbResources) {
  if (nbResources == 0 || nbResources > kMaxParts) return CUDA_ERROR_INVALID_VALUE;
  calls::lwResourceDescriptor make;
  make.resource = std::as_bytes(std::span<const CUdevResource>(resources, nbResources));
  auto answer = Ask(make);
  if (answer.code == CUDA_SUCCESS) {
    *phDesc = reinterpret_cast<CUdevResourceDesc>(answer.reply.descriptor);
  }
  return answer.code;
}

CUresult cuGreenCtxCreate(CUgreenCtx* phCtx, CUdevResourceDesc desc, CUdevice dev,
                          unsigned int flags) {
  Context* home = PrimaryContext(dev);
  if (home == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  if (desc == nullptr || flags != CU_GREEN_CTX_DEFAULT_STREAM) return CUDA_ERROR_INVALID_VALUE;
  CUcontext retained = nullptr;
  LONGWIRE_TRY(hand::cuDevicePrimaryCtxRetain(&retained, dev));
  Context* green = nullptr;
  CUresult result = NewGreenContext(home, desc, flags, &green);
  if (result == CUDA_SUCCESS) {
    *phCtx = green->green;
  } else {
    hand::cuDevicePrimaryCtxRelease_v2(dev);
  }
  return result;
}

CUresult cuGreenCtxDestroy(CUgreenCtx hCtx) {
  Context* green = FindGreenContext(hCtx);
  if (green == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  LONGWIRE_TRY(EndGreenContext(green));
  return hand::cuDevicePrimaryCtxRelease_v2(green->device);
}

CUresult cuCtxFromGreenCtx(CUcontext* pContext, CUgreenCtx hCtx) {
  Context* green = FindGreenContext(hCtx);
  if (green == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  *pContext = green->handle;
  return CUDA_SUCCESS;
}

CUresult cuGreenCtxGetId(CUgreenCtx greenCtx, unsigned long long* greenCtxId) {
  Context* current = FindContext(nullptr);
  if (greenCtx == nullptr && current != nullptr) greenCtx = current->green;
  Context* green = FindGreenContext(greenCtx);
  if (green == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  *greenCtxId = green->number.load();
  return CUDA_SUCCESS;
}

CUresult cuGreenCtxStreamCreate(CUstream* phStream, CUgreenCtx greenCtx, unsigned int flags,
                                int priority) {
  Context* green = FindGreenContext(greenCtx);
  if (green == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (flags != CU_STREAM_NON_BLOCKING) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = TakeError(green->home);
  return result == CUDA_SUCCESS ? NewProgramStream(green, flags, priority, phStream) : result;
}

CUresult cuGreenCtxRecordEvent(CUgreenCtx hCtx, CUevent hEvent) {
  return WithEvent(hCtx, hEvent, RecordContext);
}

CUresult cuGreenCtxWaitEvent(CUgreenCtx hCtx, CUevent hEvent) {
  return WithEvent(hCtx, hEvent, MakeContextWait);
}

CUresult cuStreamGetGreenCtx(CUstream hStream, CUgreenCtx* phCtx) {
  return hand::cuStreamGetCtx_v2(hStream, nullptr, phCtx);
}

}  // namespace longwire::shim::hand
