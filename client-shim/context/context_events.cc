#include "client-shim/context/context_events.h"

#include "client-shim/session/session.h"
#include "client-shim/stream/capture.h"
#include "client-shim/stream/program_streams.h"
#include "longwire/calls.h"

namespace longwire::shim {
namespace {

// A stream that only gathers waits, in front of a record; its work outlives it.
class Collector {
 public:
  explicit Collector(Context* context)
      : context_(context), result_(NewStream(context, StreamKind::kNonBlocking, 0, 0, &stream_)) {}
  ~Collector() {
    if (stream_ != nullptr) DestroyStream(stream_);
  }
  Collector(const Collector&) = delete;
  Collector& operator=(const Collector&) = delete;

  // What `stream` has been given up to now.
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

}  // namespace

CUresult RecordContext(Context* context, Event* event) {
  if (event->context != context->home) return CUDA_ERROR_INVALID_HANDLE;
  CUresult result = RefuseContextWhileCapturing(context);
  if (result != CUDA_SUCCESS) return result;
  Collector collector(context);
  for (StreamPoint& point : UnfinishedWork(context)) {
    if (point.stream->destroyed.load()) {
      // Nothing can be recorded in it any more; what it was given ends by itself.
      collector.Note(WaitForStream(point.stream, point.position));
    } else {
      collector.AddWorkOf(point.stream);
    }
    Release(point.stream);
  }
  return collector.Record(event);
}

CUresult MakeContextWait(Context* context, Event* event) {
  CUresult result = RefuseContextWhileCapturing(context);
  if (result != CUDA_SUCCESS) return result;
  {
    std::lock_guard<std::mutex> lock(event->mutex);
    if (event->captured != nullptr) {
      Invalidate(event->captured);
      return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    if (event->stream == nullptr) return CUDA_SUCCESS;  // never recorded
  }
  // An event of the context's own, which the program can neither destroy nor record anew. One
  // thread at a time, so that each gate stands behind the one before: the collector passes that
  // itself.
  static std::mutex one_at_a_time;
  std::lock_guard<std::mutex> building(one_at_a_time);
  CUevent gate = nullptr;
  result = NewEvent(context->home, CU_EVENT_DISABLE_TIMING, &gate);
  if (result != CUDA_SUCCESS) return result;
  Collector collector(context);
  collector.Add(event);
  result = collector.Record(FindEvent(gate));
  if (result != CUDA_SUCCESS) {
    DestroyEvent(gate);
    return result;
  }
  std::lock_guard<std::mutex> lock(context->gate_mutex);
  if (context->gate != nullptr) DestroyEvent(context->gate);
  context->gate = gate;
  context->gate_version.fetch_add(1, std::memory_order_release);
  return CUDA_SUCCESS;
}

namespace {

void PassGate(Context* context, Stream* stream, std::atomic<uint64_t>* passed) {
  if (passed->load(std::memory_order_acquire) ==
      context->gate_version.load(std::memory_order_acquire)) {
    return;
  }
  std::lock_guard<std::mutex> lock(context->gate_mutex);
  const uint64_t version = context->gate_version.load();
  if (passed->load() == version) return;
  if (Event* gate = FindEvent(context->gate)) {
    std::lock_guard<std::mutex> event_lock(gate->mutex);
    if (gate->stream->finished.load(std::memory_order_acquire) < gate->position) {
      calls::lwStreamWaitEvent wait;
      wait.event = gate->id;
      wait.version = gate->version;
      TheSession().Submit({stream->context_number, stream, 0}, wait);
    }
  }
  // Only now: another thread's work for this stream must stand behind the wait too.
  passed->store(version, std::memory_order_release);
}

}  // namespace

void PassGates(Stream* stream) {
  PassGate(stream->context, stream, &stream->gate_passed);
  if (stream->owner != stream->context) {
    PassGate(stream->owner, stream, &stream->green_gate_passed);
  }
}

void OpenGate(Context* context) {
  std::lock_guard<std::mutex> lock(context->gate_mutex);
  if (context->gate != nullptr) DestroyEvent(context->gate);
  context->gate = nullptr;
}

}  // namespace longwire::shim
