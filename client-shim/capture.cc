#include "client-shim/capture.h"

#include <algorithm>

#include "client-shim/context.h"
#include "client-shim/context_events.h"
#include "client-shim/entry.h"
#include "client-shim/graph.h"
#include "client-shim/never_destroyed.h"
#include "client-shim/process.h"
#include "longwire/calls.h"

namespace longwire::shim {
namespace {

// Captures that are going on, to break them by context, thread or altogether.
struct Ongoing {
  std::mutex mutex;
  std::vector<Capture*> captures;
  std::atomic<uint32_t> global{0};  // of them, in mode global
  uint64_t next_id = 1;
};

Ongoing& TheOngoing() {
  static NeverDestroyed<Ongoing> ongoing;
  return *ongoing;
}

template <class Which>
void InvalidateIf(Which which) {
  Ongoing& ongoing = TheOngoing();
  std::lock_guard<std::mutex> lock(ongoing.mutex);
  for (Capture* capture : ongoing.captures) {
    if (which(*capture)) Invalidate(capture);
  }
}

bool IsBlocking(const Stream* stream) { return stream->kind != StreamKind::kNonBlocking; }

void Enlist(Capture* capture) {
  Ongoing& ongoing = TheOngoing();
  std::lock_guard<std::mutex> lock(ongoing.mutex);
  capture->id = ongoing.next_id++;
  ongoing.captures.push_back(capture);
  capture->context->captures.fetch_add(1);
  if (capture->counts_as_blocking) capture->context->blocking_captures.fetch_add(1);
  if (capture->mode == CaptureMode::kGlobal) ongoing.global.fetch_add(1);
  if (capture->mode != CaptureMode::kRelaxed) {
    ThisThread().strict_captures += 1;
    Entry::special_calls.fetch_add(1);
  }
}

void Delist(Capture* capture) {
  Ongoing& ongoing = TheOngoing();
  std::lock_guard<std::mutex> lock(ongoing.mutex);
  std::erase(ongoing.captures, capture);
  capture->context->captures.fetch_sub(1);
  if (capture->counts_as_blocking) capture->context->blocking_captures.fetch_sub(1);
  if (capture->mode == CaptureMode::kGlobal) ongoing.global.fetch_sub(1);
  if (capture->mode != CaptureMode::kRelaxed) {
    ThisThread().strict_captures -= 1;
    Entry::special_calls.fetch_sub(1);
  }
}

}  // namespace

namespace {

CUresult RefuseLegacyBesideCapture(Stream* stream) {
  if (stream->kind != StreamKind::kLegacy || stream->context->blocking_captures.load() == 0) {
    return CUDA_SUCCESS;
  }
  InvalidateIf([&](const Capture& other) {
    return other.context == stream->context && other.counts_as_blocking;
  });
  return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
}

}  // namespace

CUresult OpenWhere(Stream* stream, Where* where) {
  *where = {stream->context_number, stream, 0};
  Capture* capture = stream->capture.load(std::memory_order_acquire);
  if (capture != nullptr) {
    if (capture->invalidated.load()) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    where->flags = wire::kCapturing;
    return CUDA_SUCCESS;
  }
  CUresult result = RefuseLegacyBesideCapture(stream);
  if (result == CUDA_SUCCESS && stream->gate_passed.load(std::memory_order_acquire) !=
                                    stream->context->gate_version.load(std::memory_order_acquire)) {
    PassGate(stream);
  }
  return result;
}

CUresult RefuseWhileCapturing(Stream* stream) {
  Capture* capture = stream->capture.load(std::memory_order_acquire);
  if (capture == nullptr) return RefuseLegacyBesideCapture(stream);
  Invalidate(capture);
  return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

CUresult RefuseContextWhileCapturing(Context* context) {
  if (context->captures.load() == 0) return CUDA_SUCCESS;
  InvalidateIf([&](const Capture& capture) { return capture.context == context; });
  return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

CUresult RefuseUnsafeCall() {
  ThreadState& thread = ThisThread();
  if (thread.capture_mode == CaptureMode::kRelaxed) return CUDA_SUCCESS;
  bool others = thread.capture_mode == CaptureMode::kGlobal && TheOngoing().global.load() != 0;
  if (thread.strict_captures == 0 && !others) return CUDA_SUCCESS;
  InvalidateIf([&](const Capture& capture) {
    return (capture.thread == thread.number && capture.mode != CaptureMode::kRelaxed) ||
           (others && capture.mode == CaptureMode::kGlobal);
  });
  return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

void Invalidate(Capture* capture) { capture->invalidated.store(true); }

CUresult JoinCapture(Stream* stream, Capture* captured) {
  Capture* own = stream->capture.load(std::memory_order_acquire);
  if (captured == nullptr) {
    if (own == nullptr) return CUDA_SUCCESS;
    Invalidate(own);
    return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
  }
  if (own == captured) return CUDA_SUCCESS;
  if (own != nullptr) {
    Invalidate(own);
    Invalidate(captured);
    return CUDA_ERROR_STREAM_CAPTURE_MERGE;
  }
  if (stream->kind == StreamKind::kLegacy) return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  std::lock_guard<std::mutex> lock(captured->mutex);
  if (captured->streams.empty()) return CUDA_ERROR_CAPTURED_EVENT;  // that capture has ended
  captured->streams.push_back(stream);
  Retain(stream);
  stream->capture.store(captured);
  return CUDA_SUCCESS;
}

CUresult BeginCapture(Stream* stream, CaptureMode mode) {
  if (stream->kind == StreamKind::kLegacy) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  if (stream->capture.load() != nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  calls::lwCaptureBegin begin;
  begin.mode = static_cast<uint32_t>(mode);
  auto answer = TheSession().CallAndWait({stream->context_number, stream, wire::kCapturing}, begin);
  if (answer.code != CUDA_SUCCESS) return answer.code;
  auto* capture = new Capture;  // stays: events and handles may point to it for ever
  capture->mode = mode;
  capture->thread = ThisThread().number;
  capture->origin = stream;
  capture->context = stream->context;
  capture->counts_as_blocking = IsBlocking(stream);
  capture->streams.push_back(stream);
  Retain(stream);
  Enlist(capture);
  stream->capture.store(capture);
  return CUDA_SUCCESS;
}

CUresult EndCapture(Stream* stream, CUgraph* graph) {
  *graph = nullptr;
  Capture* capture = stream->capture.load();
  if (capture == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  if (capture->origin != stream) return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
  if (capture->thread != ThisThread().number && capture->mode != CaptureMode::kRelaxed) {
    return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
  }
  calls::lwCaptureEnd end;
  end.graph = TheSession().NewId();
  auto answer = TheSession().CallAndWait({stream->context_number, stream, wire::kCapturing}, end);
  std::vector<Stream*> streams;
  {
    std::lock_guard<std::mutex> lock(capture->mutex);
    streams.swap(capture->streams);
  }
  for (Stream* joined : streams) {
    joined->capture.store(nullptr);
    Release(joined);
  }
  Delist(capture);
  if (capture->invalidated.load()) {
    if (answer.code == CUDA_SUCCESS) DestroyGraphInWorker(end.graph);
    return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  }
  if (answer.code != CUDA_SUCCESS) return answer.code;
  *graph = NewGraph(end.graph);
  return CUDA_SUCCESS;
}

CUstreamCaptureStatus CaptureStatus(Stream* stream, uint64_t* id) {
  Capture* capture = stream->capture.load(std::memory_order_acquire);
  *id = 0;
  if (capture == nullptr) return CU_STREAM_CAPTURE_STATUS_NONE;
  *id = capture->id;
  return capture->invalidated.load() ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                     : CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

}  // namespace longwire::shim
