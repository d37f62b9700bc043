#include "client-shim/context/context_events.h"

#include <utility>

#include "base/mutex.h"
#include "base/try.h"
#include "client-shim/session/session.h"
#include "client-shim/stream/capture.h"
#include "client-shim/stream/program_streams.h"
#include "longwire/calls.h"

namespace longwire::shim {
namespace {

// A stream that waits for several events, so that one record behind these waits covers them all.
// Its work outlives it.
class Collector {
 public:
  explicit Collector(Context* context)
      : context_(context), result_(NewStream(context, StreamKind::kNonBlocking, 0, 0, &stream_)) {}
  ~Collector() {
    if (stream_ != nullptr) DestroyStream(stream_);
  }
  Collector(const Collector&) = delete;
  Collector& operator=(const Collector&) = delete;

  // The work that `stream` has up to now.
  void AddWorkOf(Stream* stream) {
    CUevent handle = nullptr;
    if (result_ == CUDA_SUCCESS)
      result_ = NewEvent(context_->home, CU_EVENT_DISABLE_TIMING, &handle);
    if (result_ != CUDA_SUCCESS) return;
    Event* event = FindEvent(handle);
    result_ = RecordEvent(event, stream, 0);
    Add(event);
    DestroyEvent(handle);
  }
  void Add(Event* event) {
    if (result_ == CUDA_SUCCESS) result_ = WaitEvent(stream_, event, 0);
  }
  void Note(CUresult result) {
    if (result_ == CUDA_SUCCESS) result_ = result;
  }
  CUresult Record(Event* event) {
    return result_ == CUDA_SUCCESS ? RecordEvent(event, stream_, 0) : result_;
  }

 private:
  Context* context_;
  Stream* stream_ = nullptr;
  CUresult result_;
};

// The event's newest record; `captured` is null unless it is inside a capture.
struct EventRecord {
  uint64_t version = 0;
  Stream* stream = nullptr;
  uint64_t position = 0;
  Capture* captured = nullptr;
};
EventRecord NewestRecord(Event* event) {
  base::MutexLock lock(event->mutex);
  return {event->version, event->stream, event->position, event->captured};
}

ContextGate GateOf(CUevent handle) {
  Event* event = FindEvent(handle);
  EventRecord record = NewestRecord(event);
  return {handle, event->id, record.version, record.stream, record.position};
}

// Later work of the context waits for `gate`, or for nothing. The previous gate's event is
// destroyed once no thread is queueing a wait for it.
void SetGate(Context* context, const ContextGate& gate) {
  ContextGate before;
  {
    base::MutexLock lock(context->gate_mutex);
    before = std::exchange(context->gate, gate);
    if (gate.event != nullptr) context->gate_version.fetch_add(1, std::memory_order_release);
  }
  if (before.event != nullptr) DestroyEvent(before.event);
}

}  // namespace

CUresult RecordContext(Context* context, Event* event) {
  if (event->context != context->home) return CUDA_ERROR_INVALID_HANDLE;
  LONGWIRE_TRY(RefuseContextWhileCapturing(context));
  Collector collector(context);
  for (StreamPoint& point : UnfinishedWork(context)) {
    if (point.stream->destroyed.load()) {
      // Nothing can be recorded in it any more; its work finishes by itself.
      collector.Note(WaitForStream(point.stream, point.position));
    } else {
      collector.AddWorkOf(point.stream);
    }
    Release(point.stream);
  }
  return collector.Record(event);
}

CUresult MakeContextWait(Context* context, Event* event) {
  LONGWIRE_TRY(RefuseContextWhileCapturing(context));
  EventRecord record = NewestRecord(event);
  if (record.captured != nullptr) {
    Invalidate(record.captured);
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  if (record.stream == nullptr) return CUDA_SUCCESS;  // never recorded
  // An internal event, which the program can neither destroy nor record again. One thread at a
  // time, so that each gate comes behind the previous one, for which the collector's stream waits.
  static base::Mutex one_at_a_time;
  base::MutexLock building(one_at_a_time);
  CUevent gate = nullptr;
  LONGWIRE_TRY(NewEvent(context->home, CU_EVENT_DISABLE_TIMING, &gate));
  Collector collector(context);
  collector.Add(event);
  CUresult result = collector.Record(FindEvent(gate));
  if (result != CUDA_SUCCESS) {
    DestroyEvent(gate);
    return result;
  }
  SetGate(context, GateOf(gate));
  return CUDA_SUCCESS;
}

namespace {

void PassGate(Context* context, Stream* stream, std::atomic<uint64_t>* passed) {
  if (passed->load(std::memory_order_acquire) ==
      context->gate_version.load(std::memory_order_acquire)) {
    return;
  }
  base::MutexLock lock(context->gate_mutex);
  const uint64_t version = context->gate_version.load();
  if (passed->load() == version) return;
  const ContextGate gate = context->gate;
  bool waits = gate.event != nullptr &&
               gate.stream->finished.load(std::memory_order_acquire) < gate.position;
  if (waits) {
    calls::lwStreamWaitEvent wait;
    wait.event = gate.id;
    wait.version = gate.version;
    stream->session->Submit({stream->context_number, stream, 0}, wait);
  }
  // Only now: another thread's work in this stream must come behind the wait, too.
  passed->store(version, std::memory_order_release);
}

}  // namespace

void PassGates(Stream* stream) {
  PassGate(stream->context, stream, &stream->gate_passed);
  if (stream->owner != stream->context) {
    PassGate(stream->owner, stream, &stream->green_gate_passed);
  }
}

void OpenGate(Context* context) { SetGate(context, {}); }

}  // namespace longwire::shim
