// Streams, events, host functions, and waiting for and writing values in memory.
#include "softgpu/driver/stream/stream.h"

#include "softgpu/driver/device/green.h"
#include "softgpu/driver/graph/graph.h"
#include "softgpu/driver/stream/capture.h"
#include "softgpu/driver/stream/run.h"

namespace softgpu {
namespace {

constexpr int kGreatestPriority = -5;

// Enters the call and resolves its stream.
CUresult EnterStream(CUstream handle, std::shared_ptr<Stream>* stream) {
  Context* context;
  LONGWIRE_TRY(Enter(&context));
  *stream = FindStream(*context, handle);
  if (*stream) return CUDA_SUCCESS;
  bool orphan = Driver::Get().streams.Find(handle) != nullptr;  // its green context is gone
  return orphan ? CUDA_ERROR_CONTEXT_IS_DESTROYED : CUDA_ERROR_INVALID_HANDLE;
}

bool IsStreamAttribute(CUstreamAttrID attribute) {
  switch (attribute) {
    case CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW:
    case CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY:
    case CU_STREAM_ATTRIBUTE_PRIORITY:
    case CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
    case CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN:
      return true;
    default:
      return false;
  }
}

CUresult EnterEvent(CUevent handle, std::shared_ptr<Event>* event) {
  LONGWIRE_TRY(Enter());
  *event = Driver::Get().events.Find(handle);
  return *event ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult SubmitBatch(CUstream handle, std::vector<CUstreamBatchMemOpParams> operations) {
  std::shared_ptr<Stream> stream;
  LONGWIRE_TRY(EnterStream(handle, &stream));
  int device = stream->context().device;
  LONGWIRE_TRY(CheckBatch(operations, device));
  return Submit(*stream, BatchMemoryOperation{std::move(operations), device});
}

CUstreamBatchMemOpParams ValueOperation(CUstreamBatchMemOpType type, CUdeviceptr address,
                                        uint64_t value, unsigned flags) {
  CUstreamBatchMemOpParams operation = {};
  operation.operation = type;
  operation.waitValue.address = address;  // the write form has the same layout
  operation.waitValue.value64 = value;
  operation.waitValue.flags = flags;
  return operation;
}

// The callback is called even after a fault, which it gets as its status.
struct Callback {
  CUstreamCallback function;
  CUstream handle;
  void* data;
  void operator()(int fault) const {
    InHostFunction() = true;
    function(handle, static_cast<CUresult>(fault), data);
    InHostFunction() = false;
  }
};

CUresult RecordCaptured(Event& event, Stream& stream, bool external, std::shared_ptr<Event> shared)
    LONGWIRE_REQUIRES(Driver::mutex) {
  if (external) return AddCaptured(stream, EventRecordOperation{std::move(shared)});
  if (stream.capture->invalidated) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  event.captured = true;
  event.capture = stream.capture;
  event.capture_nodes = stream.capture_nodes;
  event.record = nullptr;
  return CUDA_SUCCESS;
}

// The capture in which the event was recorded last, if that goes on.
std::shared_ptr<Capture> CaptureOf(const Event& event) LONGWIRE_REQUIRES(Driver::mutex) {
  auto capture = event.capture.lock();
  return capture && !capture->members.empty() ? capture : nullptr;
}

// What was recorded last. That of a capture is not to be asked about, which spoils the capture, and
// after its end it is none.
CUresult RecordOf(const Event& event, CompletionRef* record) {
  {
    base::MutexLock lock(Driver::mutex);
    *record = event.record;
    if (event.captured) {
      auto capture = CaptureOf(event);
      if (!capture) return CUDA_ERROR_INVALID_VALUE;
      capture->invalidated = true;
      return CUDA_ERROR_CAPTURED_EVENT;
    }
  }
  return CheckUnsafeInCapture();
}

// Whether the event's last record has a time.
CUresult CheckTime(const Event& event) LONGWIRE_REQUIRES(Driver::mutex) {
  if (event.captured) {
    return CaptureOf(event) ? CUDA_ERROR_CAPTURED_EVENT : CUDA_ERROR_INVALID_VALUE;
  }
  return event.record->done() ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

bool IsTimed(const Event& event) LONGWIRE_REQUIRES(Driver::mutex) {
  return (event.flags & CU_EVENT_DISABLE_TIMING) == 0 && (event.captured || event.record);
}

// A wait for an event of a capture makes the stream part of that capture.
CUresult JoinCapture(Stream& stream, Event& event, const std::shared_ptr<Capture>& capture)
    LONGWIRE_REQUIRES(Driver::mutex) {
  if (stream.capture && stream.capture != capture) return CUDA_ERROR_STREAM_CAPTURE_MERGE;
  if (stream.legacy()) {
    capture->invalidated = true;
    return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  }
  if (capture->invalidated) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (!stream.capture) {
    stream.capture = capture;
    stream.capture_nodes.clear();
    capture->members.push_back(stream.shared_from_this());
  }
  for (GraphNode* node : event.capture_nodes) {
    auto& nodes = stream.capture_nodes;
    if (std::find(nodes.begin(), nodes.end(), node) == nodes.end()) nodes.push_back(node);
  }
  return CUDA_SUCCESS;
}

}  // namespace

CUresult MakeStream(Context& owner, unsigned flags, int priority, CUstream* handle) {
  if (handle == nullptr || (flags & ~unsigned{CU_STREAM_NON_BLOCKING}) != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  priority = std::clamp(priority, kGreatestPriority, 0);
  auto stream = std::make_shared<Stream>(&owner, flags, priority, false);
  base::MutexLock lock(Driver::mutex);
  AddToContext(stream);
  *handle = reinterpret_cast<CUstream>(Driver::Get().streams.Add(std::move(stream)));
  return CUDA_SUCCESS;
}

}  // namespace softgpu

using namespace softgpu;

CUresult cuStreamCreate(CUstream* stream, unsigned int flags) {
  return cuStreamCreateWithPriority(stream, flags, 0);
}

CUresult cuStreamCreateWithPriority(CUstream* handle, unsigned int flags, int priority) {
  Context* context;
  LONGWIRE_TRY(Enter(&context));
  return MakeStream(*CurrentContext(), flags, priority, handle);
}

// Returns at once; work in the stream goes on.
CUresult cuStreamDestroy(CUstream handle) {
  LONGWIRE_TRY(Enter());
  auto stream = Driver::Get().streams.Find(handle);
  if (!stream) return CUDA_ERROR_INVALID_HANDLE;
  if (!stream->owner().alive) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  if (!Driver::Get().streams.Remove(handle)) return CUDA_ERROR_INVALID_HANDLE;
  base::MutexLock lock(Driver::mutex);
  CloseStream(*stream);
  return CUDA_SUCCESS;
}

CUresult cuStreamGetPriority(CUstream handle, int* priority) {
  std::shared_ptr<Stream> stream;
  LONGWIRE_TRY(EnterStream(handle, &stream));
  if (priority == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *priority = stream->priority();
  return CUDA_SUCCESS;
}

CUresult cuStreamGetFlags(CUstream handle, unsigned int* flags) {
  std::shared_ptr<Stream> stream;
  LONGWIRE_TRY(EnterStream(handle, &stream));
  if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *flags = stream->flags();
  return CUDA_SUCCESS;
}

CUresult cuStreamGetId(CUstream handle, unsigned long long* id) {
  std::shared_ptr<Stream> stream;
  LONGWIRE_TRY(EnterStream(handle, &stream));
  if (id == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *id = stream->id();
  return CUDA_SUCCESS;
}

CUresult cuStreamGetDevice(CUstream handle, CUdevice* device) {
  std::shared_ptr<Stream> stream;
  LONGWIRE_TRY(EnterStream(handle, &stream));
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *device = stream->context().device;
  return CUDA_SUCCESS;
}

#undef cuStreamGetCtx
CUresult cuStreamGetCtx_v2(CUstream handle, CUcontext* context, CUgreenCtx* green) {
  std::shared_ptr<Stream> stream;
  LONGWIRE_TRY(EnterStream(handle, &stream));
  if (context != nullptr) *context = Handle(&stream->context());
  if (green != nullptr) *green = GreenHandle(stream->owner());
  return CUDA_SUCCESS;
}
EXPORTED CUresult cuStreamGetCtx(CUstream handle, CUcontext* context) {
  std::shared_ptr<Stream> stream;
  LONGWIRE_TRY(EnterStream(handle, &stream));
  if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *context = Handle(&stream->owner());
  return CUDA_SUCCESS;
}
CUresult cuStreamGetGreenCtx(CUstream handle, CUgreenCtx* green) {
  std::shared_ptr<Stream> stream;
  LONGWIRE_TRY(EnterStream(handle, &stream));
  if (green == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *green = GreenHandle(stream->owner());
  return CUDA_SUCCESS;
}

// What a stream has until a policy is set. It cannot be set, as on NVIDIA's driver.
const auto kNoPolicy = static_cast<CUsynchronizationPolicy>(-1);

// Attributes are hints (access policy, priority, synchronization policy): accepted, not kept.
CUresult cuStreamSetAttribute(CUstream handle, CUstreamAttrID attribute,
                              const CUstreamAttrValue* value) {
  std::shared_ptr<Stream> stream;
  LONGWIRE_TRY(EnterStream(handle, &stream));
  if (value == nullptr || !IsStreamAttribute(attribute)) return CUDA_ERROR_INVALID_VALUE;
  bool policy = attribute == CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY;
  if (policy && value->syncPolicy == kNoPolicy) return CUDA_ERROR_INVALID_VALUE;
  base::MutexLock lock(Driver::mutex);
  stream->attributes[attribute] = *value;
  return CUDA_SUCCESS;
}
CUresult cuStreamGetAttribute(CUstream handle, CUstreamAttrID attribute, CUstreamAttrValue* value) {
  std::shared_ptr<Stream> stream;
  LONGWIRE_TRY(EnterStream(handle, &stream));
  if (value == nullptr || !IsStreamAttribute(attribute)) return CUDA_ERROR_INVALID_VALUE;
  base::MutexLock lock(Driver::mutex);
  if (auto set = stream->attributes.find(attribute); set != stream->attributes.end()) {
    *value = set->second;
    return CUDA_SUCCESS;
  }
  *value = {};
  if (attribute == CU_STREAM_ATTRIBUTE_PRIORITY) value->priority = stream->priority();
  if (attribute == CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY) {
    value->syncPolicy = kNoPolicy;
  }
  return CUDA_SUCCESS;
}
CUresult cuStreamCopyAttributes(CUstream target_handle, CUstream source_handle) {
  std::shared_ptr<Stream> target, source;
  LONGWIRE_TRY(EnterStream(target_handle, &target));
  LONGWIRE_TRY(EnterStream(source_handle, &source));
  base::MutexLock lock(Driver::mutex);
  target->attributes = source->attributes;
  return CUDA_SUCCESS;
}

CUresult cuStreamSynchronize(CUstream handle) {
  std::shared_ptr<Stream> stream;
  LONGWIRE_TRY(EnterStream(handle, &stream));
  std::vector<CompletionRef> pending;
  {
    base::MutexLock lock(Driver::mutex);
    LONGWIRE_TRY(RefuseWhileCapturing(*stream));
    pending = PendingOf(*stream);
  }
  LONGWIRE_TRY(CheckUnsafeInCapture());
  return WaitFor(pending, stream->context());
}

CUresult cuStreamQuery(CUstream handle) {
  std::shared_ptr<Stream> stream;
  LONGWIRE_TRY(EnterStream(handle, &stream));
  std::vector<CompletionRef> pending;
  {
    base::MutexLock lock(Driver::mutex);
    LONGWIRE_TRY(RefuseWhileCapturing(*stream));
    pending = PendingOf(*stream);
  }
  LONGWIRE_TRY(CheckUnsafeInCapture());
  for (auto& completion : pending) {
    if (!completion->done()) return CUDA_ERROR_NOT_READY;
  }
  return WaitFor(pending, stream->context());
}

CUresult cuCtxSynchronize_v2(CUcontext handle) {
  Context* context;
  LONGWIRE_TRY(ResolveContext(handle, &context));
  {
    base::MutexLock lock(Driver::mutex);
    for (auto& stream : StreamsOf(*context)) {
      if (stream->capture) return RefuseWhileCapturing(*stream);
    }
  }
  return SynchronizeContext(*context);
}

CUresult cuEventCreate(CUevent* handle, unsigned int flags) {
  Context* context;
  LONGWIRE_TRY(Enter(&context));
  constexpr unsigned kKnown = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING;
  if (flags & CU_EVENT_INTERPROCESS) return Refuse("an interprocess event");
  if (handle == nullptr || (flags & ~kKnown) != 0) return CUDA_ERROR_INVALID_VALUE;
  auto event = std::make_shared<Event>();
  event->flags = flags;
  event->context = context;
  *handle = reinterpret_cast<CUevent>(Driver::Get().events.Add(std::move(event)));
  return CUDA_SUCCESS;
}

CUresult cuEventDestroy(CUevent handle) {
  LONGWIRE_TRY(Enter());
  return Driver::Get().events.Remove(handle) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuEventRecord(CUevent event, CUstream stream) {
  return cuEventRecordWithFlags(event, stream, CU_EVENT_RECORD_DEFAULT);
}

CUresult cuEventRecordWithFlags(CUevent event_handle, CUstream handle, unsigned int flags) {
  std::shared_ptr<Event> event;
  std::shared_ptr<Stream> stream;
  LONGWIRE_TRY(EnterEvent(event_handle, &event));
  LONGWIRE_TRY(EnterStream(handle, &stream));
  if ((flags & ~unsigned{CU_EVENT_RECORD_EXTERNAL}) != 0) return CUDA_ERROR_INVALID_VALUE;
  if (event->context != &stream->context()) return CUDA_ERROR_INVALID_HANDLE;
  stream->WaitForRoom();
  base::MutexLock lock(Driver::mutex);
  if (stream->capture) return RecordCaptured(*event, *stream, flags != 0, event);
  LONGWIRE_TRY(CheckLegacyCapture(*stream));
  if (flags != 0) return CUDA_ERROR_ILLEGAL_STATE;
  event->captured = false;
  event->record = Enqueue(*stream, [](int) {});
  return CUDA_SUCCESS;
}

CUresult cuStreamWaitEvent(CUstream handle, CUevent event_handle, unsigned int flags) {
  std::shared_ptr<Event> event;
  std::shared_ptr<Stream> stream;
  LONGWIRE_TRY(EnterStream(handle, &stream));
  LONGWIRE_TRY(EnterEvent(event_handle, &event));
  if ((flags & ~unsigned{CU_EVENT_WAIT_EXTERNAL}) != 0) return CUDA_ERROR_INVALID_VALUE;
  stream->WaitForRoom();
  base::MutexLock lock(Driver::mutex);
  if (flags != 0) {
    LONGWIRE_TRY(CheckLegacyCapture(*stream));
    if (!stream->capture) return CUDA_ERROR_ILLEGAL_STATE;
    return AddCaptured(*stream, EventWaitOperation{event});
  }
  if (event->captured) {
    auto capture = CaptureOf(*event);
    if (!capture) {
      if (stream->capture) stream->capture->invalidated = true;
      return CUDA_ERROR_INVALID_VALUE;
    }
    return JoinCapture(*stream, *event, capture);
  }
  if (stream->capture) {
    stream->capture->invalidated = true;
    return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
  }
  LONGWIRE_TRY(CheckLegacyCapture(*stream));
  if (event->record) Enqueue(*stream, [](int) {}, {event->record});
  return CUDA_SUCCESS;
}

CUresult cuEventQuery(CUevent handle) {
  std::shared_ptr<Event> event;
  LONGWIRE_TRY(EnterEvent(handle, &event));
  CompletionRef record;
  LONGWIRE_TRY(RecordOf(*event, &record));
  if (!record) return CUDA_SUCCESS;
  if (!record->done()) return CUDA_ERROR_NOT_READY;
  return WaitFor({&record, 1}, *event->context);
}

CUresult cuEventSynchronize(CUevent handle) {
  std::shared_ptr<Event> event;
  LONGWIRE_TRY(EnterEvent(handle, &event));
  CompletionRef record;
  LONGWIRE_TRY(RecordOf(*event, &record));
  return record ? WaitFor({&record, 1}, *event->context) : CUDA_SUCCESS;
}

CUresult cuEventElapsedTime(float* milliseconds, CUevent start_handle, CUevent end_handle) {
  std::shared_ptr<Event> start, end;
  LONGWIRE_TRY(EnterEvent(start_handle, &start));
  LONGWIRE_TRY(EnterEvent(end_handle, &end));
  if (milliseconds == nullptr) return CUDA_ERROR_INVALID_VALUE;
  base::MutexLock lock(Driver::mutex);
  if (!IsTimed(*start) || !IsTimed(*end)) return CUDA_ERROR_INVALID_HANDLE;
  LONGWIRE_TRY(CheckTime(*start));
  LONGWIRE_TRY(CheckTime(*end));
  std::chrono::duration<float, std::milli> span =
      end->record->finished_at() - start->record->finished_at();
  *milliseconds = span.count();
  return CUDA_SUCCESS;
}

CUresult cuLaunchHostFunc(CUstream handle, CUhostFn function, void* data) {
  std::shared_ptr<Stream> stream;
  LONGWIRE_TRY(EnterStream(handle, &stream));
  if (function == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return Submit(*stream, HostOperation{{function, data}});
}

CUresult cuStreamAddCallback(CUstream handle, CUstreamCallback function, void* data,
                             unsigned int flags) {
  std::shared_ptr<Stream> stream;
  LONGWIRE_TRY(EnterStream(handle, &stream));
  if (function == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  stream->WaitForRoom();
  base::MutexLock lock(Driver::mutex);
  LONGWIRE_TRY(RefuseWhileCapturing(*stream));
  Enqueue(*stream, Callback{function, handle, data});
  return CUDA_SUCCESS;
}

CUresult cuStreamWaitValue32(CUstream s, CUdeviceptr address, cuuint32_t value,
                             unsigned int flags) {
  return SubmitBatch(s, {ValueOperation(CU_STREAM_MEM_OP_WAIT_VALUE_32, address, value, flags)});
}
CUresult cuStreamWaitValue64(CUstream s, CUdeviceptr address, cuuint64_t value,
                             unsigned int flags) {
  return SubmitBatch(s, {ValueOperation(CU_STREAM_MEM_OP_WAIT_VALUE_64, address, value, flags)});
}
CUresult cuStreamWriteValue32(CUstream s, CUdeviceptr address, cuuint32_t value,
                              unsigned int flags) {
  return SubmitBatch(s, {ValueOperation(CU_STREAM_MEM_OP_WRITE_VALUE_32, address, value, flags)});
}
CUresult cuStreamWriteValue64(CUstream s, CUdeviceptr address, cuuint64_t value,
                              unsigned int flags) {
  return SubmitBatch(s, {ValueOperation(CU_STREAM_MEM_OP_WRITE_VALUE_64, address, value, flags)});
}
CUresult cuStreamBatchMemOp(CUstream s, unsigned int count, CUstreamBatchMemOpParams* operations,
                            unsigned int flags) {
  constexpr unsigned kMaxOperations = 255;  // as documented
  if (count > kMaxOperations || (count != 0 && operations == nullptr))
    return CUDA_ERROR_INVALID_VALUE;
  return SubmitBatch(s, {operations, operations + count});
}
