// Streams.
#include "client-shim/stream/stream.h"

#include <algorithm>
#include <cstring>

#include "base/try.h"
#include "client-shim/context/context.h"
#include "client-shim/context/current_context.h"
#include "client-shim/mirror/managed_memory.h"
#include "client-shim/mirror/mirrors.h"
#include "client-shim/session/session.h"
#include "client-shim/stream/capture.h"
#include "client-shim/stream/event.h"
#include "client-shim/stream/program_streams.h"
#include "client-shim/support/threads.h"
#include "longwire/shim_hand_written.h"

namespace longwire::shim::hand {
namespace {

// For questions about a stream's work. What captures, or is ordered with what does, says so first.
CUresult RefuseBesideCapture(Stream* stream) {
  CUresult result = RefuseWhileCapturing(stream);
  return result == CUDA_SUCCESS ? RefuseUnsafeCall() : result;
}

// What a wait for the stream waits for; each stream is retained.
std::vector<StreamPoint> Covered(Stream* stream) {
  std::vector<StreamPoint> points;
  auto add = [&points](Stream* covered) {
    Retain(covered);
    points.push_back({covered, covered->last.load()});
  };
  if (stream->kind != StreamKind::kLegacy) {
    add(stream);
    return points;
  }
  base::MutexLock lock(stream->context->mutex);
  for (Stream* other : stream->context->streams) {
    if (WaitCovers(stream, other)) add(other);
  }
  return points;
}

}  // namespace

CUresult cuStreamCreateWithPriority(CUstream* phStream, unsigned int flags, int priority) {
  Context *owner = nullptr, *context = nullptr;
  CUresult result = RequireHealthyContext(&context);
  if (result == CUDA_SUCCESS) result = RequireOwner(&owner);
  return result == CUDA_SUCCESS ? NewProgramStream(owner, flags, priority, phStream) : result;
}

CUresult cuStreamCreate(CUstream* phStream, unsigned int Flags) {
  return hand::cuStreamCreateWithPriority(phStream, Flags, 0);
}

CUresult cuStreamDestroy_v2(CUstream hStream) {
  if (hStream == nullptr || hStream == CU_STREAM_LEGACY || hStream == CU_STREAM_PER_THREAD) {
    return CUDA_ERROR_INVALID_HANDLE;
  }
  Stream* stream = nullptr;
  LONGWIRE_TRY(FindStream(hStream, &stream));
  // What a stream that only joined the capture was given stays in it.
  Capture* capture = stream->capture.load();
  if (capture != nullptr && capture->origin == stream) Invalidate(capture);
  DestroyStream(stream);
  return CUDA_SUCCESS;
}

CUresult cuStreamGetPriority(CUstream hStream, int* priority) {
  Stream* stream = nullptr;
  CUresult result = FindStream(hStream, &stream);
  if (result == CUDA_SUCCESS) *priority = stream->priority;
  return result;
}

CUresult cuStreamGetId(CUstream hStream, unsigned long long* streamId) {
  Stream* stream = nullptr;
  CUresult result = FindStream(hStream, &stream);
  if (result == CUDA_SUCCESS) *streamId = stream->id;
  return result;
}

CUresult cuStreamGetFlags(CUstream hStream, unsigned int* flags) {
  Stream* stream = nullptr;
  CUresult result = FindStream(hStream, &stream);
  if (result == CUDA_SUCCESS) *flags = stream->flags;
  return result;
}

CUresult cuStreamGetDevice(CUstream hStream, CUdevice* device) {
  Stream* stream = nullptr;
  CUresult result = FindStream(hStream, &stream);
  if (result == CUDA_SUCCESS) *device = stream->context->device;
  return result;
}

CUresult cuStreamGetCtx(CUstream hStream, CUcontext* pctx) {
  Stream* stream = nullptr;
  CUresult result = FindStream(hStream, &stream);
  if (result == CUDA_SUCCESS) *pctx = stream->owner->handle;
  return result;
}

CUresult cuStreamGetCtx_v2(CUstream hStream, CUcontext* pCtx, CUgreenCtx* pGreenCtx) {
  Stream* stream = nullptr;
  LONGWIRE_TRY(FindStream(hStream, &stream));
  if (pCtx != nullptr) *pCtx = stream->context->handle;
  if (pGreenCtx != nullptr) *pGreenCtx = stream->owner->green;
  return CUDA_SUCCESS;
}

// The policy of a stream that was never given one is -1, which the driver does not let anybody set.
static CUresult CopyAttribute(CUstream target, CUstream source, CUstreamAttrID attribute) {
  CUstreamAttrValue value{}, present{};
  CUresult result = forward::cuStreamGetAttribute(source, attribute, &value);
  if (result == CUDA_SUCCESS) result = forward::cuStreamGetAttribute(target, attribute, &present);
  if (result == CUDA_ERROR_INVALID_VALUE || result == CUDA_ERROR_NOT_SUPPORTED) {
    return CUDA_SUCCESS;  // this driver's streams have no such attribute
  }
  if (result != CUDA_SUCCESS || std::memcmp(&value, &present, sizeof(value)) == 0) return result;
  result = forward::cuStreamSetAttribute(target, attribute, &value);
  bool policy = attribute == CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY;
  if (!policy || result != CUDA_ERROR_INVALID_VALUE) return result;
  value.syncPolicy = CU_SYNC_POLICY_AUTO;
  return forward::cuStreamSetAttribute(target, attribute, &value);
}

CUresult cuStreamCopyAttributes(CUstream dstStream, CUstream srcStream) {
  Stream *target = nullptr, *source = nullptr;
  LONGWIRE_TRY(ResolveStream(dstStream, &target));
  LONGWIRE_TRY(ResolveStream(srcStream, &source));
  if (target->context != source->context) return CUDA_ERROR_INVALID_VALUE;
  for (CUstreamAttrID attribute :
       {CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY,
        CU_STREAM_ATTRIBUTE_PRIORITY, CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP,
        CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN}) {
    LONGWIRE_TRY(CopyAttribute(dstStream, srcStream, attribute));
  }
  target->priority = source->priority;
  return CUDA_SUCCESS;
}

CUresult cuStreamQuery(CUstream hStream) {
  Stream* stream = nullptr;
  CUresult result = ResolveForWait(hStream, &stream);
  if (result == CUDA_SUCCESS) result = RefuseBesideCapture(stream);
  if (result != CUDA_SUCCESS) return result;
  SendWhatWorkAwaits();
  for (StreamPoint& point : Covered(stream)) {
    CUresult state = PollStream(point.stream, point.position);
    if (result == CUDA_SUCCESS) result = state;
    Release(point.stream);
  }
  if (result == CUDA_SUCCESS) result = ReturnDeviceWrites();
  return result == CUDA_SUCCESS ? TakeError(stream->context) : result;
}

CUresult cuStreamSynchronize(CUstream hStream) {
  Stream* stream = nullptr;
  LONGWIRE_TRY(ResolveForWait(hStream, &stream));
  LONGWIRE_TRY(RefuseBesideCapture(stream));
  std::vector<StreamPoint> points = Covered(stream);
  CUresult result = WaitForWork(points);
  return result == CUDA_SUCCESS ? TakeError(stream->context) : result;
}

CUresult cuStreamWaitEvent(CUstream hStream, CUevent hEvent, unsigned int Flags) {
  Stream* stream = nullptr;
  LONGWIRE_TRY(ResolveStream(hStream, &stream));
  if ((Flags & ~CU_EVENT_WAIT_EXTERNAL) != 0) return CUDA_ERROR_INVALID_VALUE;
  Event* event = FindEvent(hEvent);
  return event == nullptr ? CUDA_ERROR_INVALID_HANDLE : WaitEvent(stream, event, Flags);
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  if (*mode > CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_ERROR_INVALID_VALUE;
  ThreadState& thread = ThisThread();
  CaptureMode before = thread.capture_mode;
  thread.capture_mode = static_cast<CaptureMode>(*mode);
  *mode = static_cast<CUstreamCaptureMode>(before);
  return CUDA_SUCCESS;
}

CUresult cuStreamAttachMemAsync(CUstream hStream, CUdeviceptr dptr, size_t length,
                                unsigned int flags) {
  Stream* stream = nullptr;
  LONGWIRE_TRY(ResolveStream(hStream, &stream));
  LONGWIRE_TRY(RefuseWhileCapturing(stream));
  bool single = flags == CU_MEM_ATTACH_SINGLE;
  if (!single && flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (single && (hStream == nullptr || hStream == CU_STREAM_LEGACY)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return IsManagedRange(dptr, length) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace longwire::shim::hand
