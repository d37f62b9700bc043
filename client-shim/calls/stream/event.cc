// Events.
#include "client-shim/stream/event.h"

#include "base/try.h"
#include "client-shim/stream/capture.h"
#include "client-shim/stream/program_streams.h"
#include "client-shim/stream/stream.h"
#include "longwire/shim_hand_written.h"

namespace longwire::shim::hand {
namespace {

CUresult RefuseNoEvent() {
  CUresult result = RefuseUnsafeCall();
  return result == CUDA_SUCCESS ? CUDA_ERROR_INVALID_HANDLE : result;
}

}  // namespace

CUresult cuEventCreate(CUevent* phEvent, unsigned int Flags) { return NewEvent(Flags, phEvent); }

CUresult cuEventDestroy_v2(CUevent hEvent) { return DestroyEvent(hEvent); }

CUresult cuEventRecordWithFlags(CUevent hEvent, CUstream hStream, unsigned int flags) {
  Stream* stream = nullptr;
  LONGWIRE_TRY(ResolveStream(hStream, &stream));
  Event* event = FindEvent(hEvent);
  return event == nullptr ? CUDA_ERROR_INVALID_HANDLE : RecordEvent(event, stream, flags);
}

CUresult cuEventRecord(CUevent hEvent, CUstream hStream) {
  return hand::cuEventRecordWithFlags(hEvent, hStream, 0);
}

CUresult cuEventQuery(CUevent hEvent) {
  Event* event = FindEvent(hEvent);
  return event == nullptr ? RefuseNoEvent() : QueryEvent(event);
}

CUresult cuEventSynchronize(CUevent hEvent) {
  Event* event = FindEvent(hEvent);
  return event == nullptr ? RefuseNoEvent() : SynchronizeEvent(event);
}

CUresult cuEventElapsedTime_v2(float* pMilliseconds, CUevent hStart, CUevent hEnd) {
  Event* start = FindEvent(hStart);
  Event* end = FindEvent(hEnd);
  if (start == nullptr || end == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  return ElapsedTime(start, end, pMilliseconds);
}

}  // namespace longwire::shim::hand
