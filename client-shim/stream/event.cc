#include "client-shim/stream/event.h"

#include <initializer_list>

#include "base/try.h"
#include "client-shim/context/context.h"
#include "client-shim/session/session.h"
#include "client-shim/stream/capture.h"
#include "client-shim/stream/program_streams.h"
#include "client-shim/stream/shared_event.h"
#include "client-shim/stream/waits_across.h"
#include "client-shim/support/never_destroyed.h"
#include "longwire/calls.h"

namespace longwire::shim {
namespace {

using EventTable = HandleTable<Event, HandleKind::kEvent>;

EventTable& Events() {
  static NeverDestroyed<EventTable> table;
  return *table;
}

constexpr unsigned kKnownFlags =
    CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;

// Whether the program may ask about the event's newest record.
CUresult CheckRecord(Event* event) {
  {
    base::MutexLock lock(event->mutex);
    if (event->captured != nullptr) {
      if (event->captured->ended.load()) return CUDA_ERROR_INVALID_VALUE;
      Invalidate(event->captured);
      return CUDA_ERROR_CAPTURED_EVENT;
    }
  }
  return RefuseUnsafeCall();
}

// The newest record's place; the stream is retained for the caller, nullptr if there is none.
CUresult Place(Event* event, Stream** stream, uint64_t* position) {
  LONGWIRE_TRY(CheckRecord(event));
  base::MutexLock lock(event->mutex);
  *stream = event->stream;
  *position = event->position;
  if (*stream != nullptr) Retain(*stream);
  return CUDA_SUCCESS;
}

// A node of the captured graph that waits for the event at every launch: only in a capture can that
// be asked for.
CUresult WaitInGraph(Stream* stream, Event* event, unsigned flags) {
  Where where;
  LONGWIRE_TRY(OpenWhere(stream, &where));
  if (where.flags == 0) return CUDA_ERROR_ILLEGAL_STATE;
  if (event->session != stream->session) {
    return RefuseIfSeveral("a graph's wait for another server's event");
  }
  if (event->shared_words != 0) return WaitShared(stream, event);
  NoteGraphEvent(*event);
  calls::lwStreamWaitEvent wait;
  wait.event = event->id;
  wait.version = 0;
  wait.flags = flags;
  uint64_t position = where.session->Submit(where, wait);
  return ClientSession::Queued(position);
}

// Whether the events are such as have a time, which those of captures are not. Asking breaks no
// capture.
CUresult CheckTimes(std::initializer_list<Event*> events) {
  CUresult captured = CUDA_SUCCESS;
  for (Event* event : events) {
    if ((event->flags & CU_EVENT_DISABLE_TIMING) != 0) return CUDA_ERROR_INVALID_HANDLE;
    base::MutexLock lock(event->mutex);
    if (event->stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;  // never recorded
    if (event->captured == nullptr || captured != CUDA_SUCCESS) continue;
    captured = event->captured->ended.load() ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_CAPTURED_EVENT;
  }
  return captured;
}

CUresult MakeEvent(Context* context, unsigned flags, Event** made) {
  if ((flags & ~kKnownFlags) != 0) return CUDA_ERROR_INVALID_VALUE;
  bool shared = (flags & CU_EVENT_INTERPROCESS) != 0;
  if (shared && (flags & CU_EVENT_DISABLE_TIMING) == 0) return CUDA_ERROR_INVALID_VALUE;
  Event* event = Events().New();
  if (event == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  event->session = context->session;
  event->id = event->session->NewId();
  event->flags = flags;
  event->context = context;
  event->context_number = context->number.load();
  calls::lwEventCreate create;
  create.event = event->id;
  create.flags = flags;
  event->session->Submit({event->context_number, nullptr, 0}, create);
  *made = event;
  return CUDA_SUCCESS;
}

CUresult Finish(Event* event, CUresult result, CUevent* handle) {
  event->handle = reinterpret_cast<CUevent>(Events().Publish(event));
  *handle = event->handle;
  if (result != CUDA_SUCCESS) DestroyEvent(*handle);
  return result;
}

// `shared`, `own`: what asks about, or waits for, an event of several programs and one of a stream.
CUresult Complete(Event* event, CUresult (*shared)(Event*), CUresult (*own)(Stream*, uint64_t)) {
  if (event->shared_words != 0) {
    LONGWIRE_TRY(CheckRecord(event));
    return shared(event);
  }
  Stream* stream = nullptr;
  uint64_t position = 0;
  LONGWIRE_TRY(Place(event, &stream, &position));
  if (stream != nullptr) {
    CUresult result = own(stream, position);
    Release(stream);
    if (result != CUDA_SUCCESS) return result;
  }
  // Also of an event that was never recorded: its context may have failed.
  return TakeError(event->context);
}

}  // namespace

CUresult NewEvent(unsigned flags, CUevent* handle) {
  Context* context = nullptr;
  LONGWIRE_TRY(RequireHealthyContext(&context));
  return NewEvent(context, flags, handle);
}

CUresult NewEvent(Context* context, unsigned flags, CUevent* handle) {
  Event* event = nullptr;
  LONGWIRE_TRY(MakeEvent(context, flags, &event));
  CUresult result = (flags & CU_EVENT_INTERPROCESS) != 0 ? MakeShared(event) : CUDA_SUCCESS;
  return Finish(event, result, handle);
}

CUresult NewSharedEvent(const SharedPiece& piece, CUevent* handle) {
  Context* context = nullptr;
  LONGWIRE_TRY(RequireHealthyContext(&context));
  Event* event = nullptr;
  LONGWIRE_TRY(MakeEvent(context, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING, &event));
  return Finish(event, OpenSharedEvent(event, piece), handle);
}

Event* FindEvent(CUevent handle) { return Events().Find(reinterpret_cast<uint64_t>(handle)); }

CUresult DestroyEvent(CUevent handle) {
  Event* event = FindEvent(handle);
  if (event == nullptr || !Events().Retire(event)) return CUDA_ERROR_INVALID_HANDLE;
  {
    base::MutexLock lock(event->mutex);
    if (event->stream != nullptr) Release(event->stream);
    event->stream = nullptr;
  }
  DropShared(event);
  ForgetGraphEvent(event->id);
  calls::lwEventDestroy destroy;
  destroy.event = event->id;
  event->session->Submit({event->context_number, nullptr, 0}, destroy);
  Events().Recycle(event);
  return CUDA_SUCCESS;
}

CUresult RecordEvent(Event* event, Stream* stream, unsigned flags) {
  if ((flags & ~CU_EVENT_RECORD_EXTERNAL) != 0) return CUDA_ERROR_INVALID_VALUE;
  if (stream->context != event->context) return CUDA_ERROR_INVALID_HANDLE;
  Where where;
  LONGWIRE_TRY(OpenWhere(stream, &where));
  if (where.flags == 0 && flags != 0) return CUDA_ERROR_ILLEGAL_STATE;
  if (event->shared_words != 0) return RecordShared(event, stream);
  calls::lwEventRecord record;
  record.event = event->id;
  if (flags != 0) {  // a node that records it at every launch
    NoteGraphEvent(*event);
    record.version = 0;
    record.flags = flags;
    uint64_t position = where.session->Submit(where, record);
    return ClientSession::Queued(position);
  }
  Retain(stream);
  base::MutexLock lock(event->mutex);
  record.version = ++event->version;
  record.flags = flags;
  uint64_t position = where.session->Submit(where, record);
  if (event->stream != nullptr) Release(event->stream);
  event->stream = stream;
  event->position = position;
  event->captured = stream->capture.load();
  return ClientSession::Queued(position);
}

CUresult PlaceBorder(Stream* stream) {
  if (!IsBorder(stream)) return CUDA_SUCCESS;
  CUevent border = nullptr;
  LONGWIRE_TRY(NewEvent(stream->context, CU_EVENT_DISABLE_TIMING, &border));
  const CUresult result = RecordEvent(FindEvent(border), stream, 0);
  DestroyEvent(border);
  return result;
}

CUresult WaitEvent(Stream* stream, Event* event, unsigned flags) {
  if ((flags & ~CU_EVENT_WAIT_EXTERNAL) != 0) return CUDA_ERROR_INVALID_VALUE;
  if (flags != 0) return WaitInGraph(stream, event, flags);
  const bool across = event->session != stream->session;
  if (event->shared_words != 0) {
    if (across) return RefuseIfSeveral("a wait for another server's event of several programs");
    return WaitShared(stream, event);
  }
  base::MutexLock lock(event->mutex);
  if (event->stream == nullptr) return CUDA_SUCCESS;  // never recorded
  if (across && event->captured != nullptr) {         // captures do not cross servers
    Invalidate(event->captured);
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  LONGWIRE_TRY(JoinCapture(stream, event->captured));
  Where where;
  LONGWIRE_TRY(OpenWhere(stream, &where));
  bool over_already = event->captured == nullptr &&
                      event->stream->finished.load(std::memory_order_acquire) >= event->position;
  if (over_already) {
    lock.Unlock();
    return PlaceBorder(stream);
  }
  if (across) return WaitAcross(stream, where, event->stream, event->position);
  calls::lwStreamWaitEvent wait;
  wait.event = event->id;
  wait.version = event->version;
  wait.flags = flags;
  uint64_t position = where.session->Submit(where, wait);
  return ClientSession::Queued(position);
}

CUresult QueryEvent(Event* event) { return Complete(event, &QueryShared, &QueryStream); }

CUresult SynchronizeEvent(Event* event) {
  return Complete(event, &SynchronizeShared, &WaitForStream);
}

CUresult ElapsedTime(Event* start, Event* end, float* milliseconds) {
  LONGWIRE_TRY(CheckTimes({start, end}));
  if (start->session != end->session) return CUDA_ERROR_INVALID_HANDLE;
  calls::lwEventElapsed elapsed;
  for (auto [event, id, version] : {std::tuple{start, &elapsed.start, &elapsed.start_version},
                                    std::tuple{end, &elapsed.end, &elapsed.end_version}}) {
    Stream* stream = nullptr;
    uint64_t position = 0;
    {
      base::MutexLock lock(event->mutex);
      if (event->stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;  // destroyed just now
      stream = event->stream;
      position = event->position;
      Retain(stream);
      *version = event->version;
    }
    *id = event->id;
    CUresult result = PollStream(stream, position);
    Release(stream);
    if (result != CUDA_SUCCESS) return result;
  }
  auto answer = start->session->CallAndWait({start->context_number, nullptr, 0}, elapsed);
  if (answer.code == CUDA_SUCCESS) *milliseconds = answer.reply.milliseconds;
  return answer.code;
}

}  // namespace longwire::shim
