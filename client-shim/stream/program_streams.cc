#include "client-shim/stream/program_streams.h"

#include <vector>

#include "base/try.h"
#include "client-shim/mirror/mirrors.h"
#include "client-shim/session/session.h"
#include "client-shim/stream/early_copies.h"

namespace longwire::shim {

CUresult ResolveForWait(CUstream handle, Stream** stream) {
  LONGWIRE_TRY(FindStream(handle, stream));
  if (ClientSession::over() != CUDA_SUCCESS) return ClientSession::over();
  return TakeError((*stream)->context);
}

CUresult ResolveStream(CUstream handle, Stream** stream) {
  LONGWIRE_TRY(FindStream(handle, stream));
  if (ClientSession::over() != CUDA_SUCCESS) return ClientSession::over();
  LONGWIRE_TRY(AwaitEarlyCopies(*stream));
  return TakeError((*stream)->context);
}

CUresult ResolveForWork(CUstream handle, Stream** stream) {
  LONGWIRE_TRY(ResolveStream(handle, stream));
  return WaitForRoom(*stream);
}

CUresult WaitForRoom(Stream* stream) {
  uint64_t awaited = AwaitedForRoom(stream);
  if (awaited == 0) return CUDA_SUCCESS;
  CUresult result = AwaitStream(stream, awaited);
  stream->session->FlushText();
  return result == CUDA_SUCCESS ? TakeError(stream->context) : result;
}

CUresult WaitForStream(Stream* stream, uint64_t position) {
  StreamPoint point{stream, position};
  AwaitedWrites writes({&point, 1});
  CUresult result = AwaitStream(stream, point.position);
  stream->session->FlushText();
  CUresult returned = writes.Return();
  return result == CUDA_SUCCESS ? returned : result;
}

CUresult QueryStream(Stream* stream, uint64_t position) {
  SendWhatWorkAwaits();
  LONGWIRE_TRY(PollStream(stream, position));
  return ReturnDeviceWrites();
}

CUresult WaitForWork(std::span<StreamPoint> points) {
  AwaitedWrites writes(points);
  // All are asked for before the first is waited for: one round trip for all.
  for (const StreamPoint& point : points) {
    if (point.stream->finished.load() < point.position) AwaitProgress(point.stream, point.position);
  }
  CUresult result = CUDA_SUCCESS;
  for (const StreamPoint& point : points) {
    CUresult state = AwaitStream(point.stream, point.position);
    if (result == CUDA_SUCCESS) result = state;
    Release(point.stream);
  }
  FlushAllText();
  CUresult returned = writes.Return();
  return result == CUDA_SUCCESS ? returned : result;
}

CUresult SynchronizeContext(Context* context) {
  std::vector<StreamPoint> points;
  {
    base::MutexLock lock(context->home->mutex);
    for (Stream* stream : context->home->streams) {
      if (!Belongs(stream, context)) continue;
      Retain(stream);
      points.push_back({stream, stream->last.load()});
    }
  }
  CUresult result = WaitForWork(points);
  for (StreamPoint& point : UnfinishedWork(context))
    Release(point.stream);  // forgets destroyed ones
  return result == CUDA_SUCCESS ? TakeError(context->home) : result;
}

}  // namespace longwire::shim
