#include "client-shim/stream/capture.h"

#include <algorithm>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "client-shim/context/context.h"
#include "client-shim/context/context_events.h"
#include "client-shim/session/process_state.h"
#include "client-shim/session/session.h"
#include "client-shim/support/never_destroyed.h"

namespace longwire::shim {
namespace {

// Captures that are going on, to break them by context, thread or altogether.
struct Captures {
  base::Mutex mutex{base::ranks::kCaptures};
  std::vector<Capture*> captures LONGWIRE_GUARDED_BY(mutex);
  std::atomic<uint32_t> global{0};  // of them, in mode global
  uint64_t next_id LONGWIRE_GUARDED_BY(mutex) = 1;
};

Captures& TheCaptures() {
  static NeverDestroyed<Captures> captures;
  return *captures;
}

template <class Which>
void InvalidateIf(Which which) {
  Captures& ongoing = TheCaptures();
  base::MutexLock lock(ongoing.mutex);
  for (Capture* capture : ongoing.captures) {
    if (which(*capture)) Invalidate(capture);
  }
}

CUresult RefuseLegacyBesideCapture(Stream* stream) {
  if (stream->kind != StreamKind::kLegacy || stream->owner->blocking_captures.load() == 0) {
    return CUDA_SUCCESS;
  }
  InvalidateIf([&](const Capture& other) {
    return other.owner == stream->owner && other.counts_as_blocking;
  });
  return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
}

}  // namespace

CUresult OpenWhere(Stream* stream, Where* where) {
  *where = {stream->context_number, stream, 0, stream->session};
  Capture* capture = stream->capture.load(std::memory_order_acquire);
  if (capture != nullptr) {
    if (capture->invalidated.load()) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    where->flags = wire::kCapturing;
    return CUDA_SUCCESS;
  }
  CUresult result = RefuseLegacyBesideCapture(stream);
  if (result == CUDA_SUCCESS) PassGates(stream);
  return result;
}

CUresult RefuseWhileCapturing(Stream* stream) {
  Capture* capture = stream->capture.load(std::memory_order_acquire);
  if (capture == nullptr) return RefuseLegacyBesideCapture(stream);
  Invalidate(capture);
  return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

CUresult RefuseContextWhileCapturing(Context* context) {
  if (context->home->captures.load() == 0) return CUDA_SUCCESS;
  bool any = false;
  InvalidateIf([&](const Capture& capture) {
    bool one = capture.context == context || capture.owner == context;
    any |= one;
    return one;
  });
  return any ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS;
}

namespace {

// Whether captures of other threads forbid this one what is unsafe.
bool MindsOthers(const ThreadState& thread) {
  return thread.capture_mode == CaptureMode::kGlobal && TheCaptures().global.load() != 0;
}

}  // namespace

bool IsUnsafeCallForbidden() {
  const ThreadState& thread = ThisThread();
  if (thread.capture_mode == CaptureMode::kRelaxed) return false;
  return thread.strict_captures != 0 || MindsOthers(thread);
}

CUresult RefuseUnsafeCall() {
  if (!IsUnsafeCallForbidden()) return CUDA_SUCCESS;
  const ThreadState& thread = ThisThread();
  InvalidateIf([&](const Capture& capture) {
    return (capture.thread == thread.number && capture.mode != CaptureMode::kRelaxed) ||
           (MindsOthers(thread) && capture.mode == CaptureMode::kGlobal);
  });
  return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

void Invalidate(Capture* capture) { capture->invalidated.store(true); }

void EnlistCapture(Capture* capture) {
  Captures& ongoing = TheCaptures();
  base::MutexLock lock(ongoing.mutex);
  capture->id = ongoing.next_id++;
  ongoing.captures.push_back(capture);
  capture->context->captures.fetch_add(1);
  if (capture->counts_as_blocking) capture->owner->blocking_captures.fetch_add(1);
  if (capture->mode == CaptureMode::kGlobal) ongoing.global.fetch_add(1);
  if (capture->mode != CaptureMode::kRelaxed) {
    ThisThread().strict_captures += 1;
    special_calls.fetch_add(1);
  }
}

void DelistCapture(Capture* capture) {
  Captures& ongoing = TheCaptures();
  base::MutexLock lock(ongoing.mutex);
  std::erase(ongoing.captures, capture);
  capture->context->captures.fetch_sub(1);
  if (capture->counts_as_blocking) capture->owner->blocking_captures.fetch_sub(1);
  if (capture->mode == CaptureMode::kGlobal) ongoing.global.fetch_sub(1);
  if (capture->mode != CaptureMode::kRelaxed) {
    ThisThread().strict_captures -= 1;
    special_calls.fetch_sub(1);
  }
}

CUresult JoinCapture(Stream* stream, Capture* captured) {
  Capture* own = stream->capture.load(std::memory_order_acquire);
  if (captured == nullptr) {
    if (own == nullptr) return CUDA_SUCCESS;
    Invalidate(own);
    return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
  }
  if (captured->ended.load()) {
    if (own != nullptr) Invalidate(own);
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (own == captured) return CUDA_SUCCESS;
  if (own != nullptr) {
    Invalidate(own);
    Invalidate(captured);
    return CUDA_ERROR_STREAM_CAPTURE_MERGE;
  }
  if (stream->kind == StreamKind::kLegacy) {
    Invalidate(captured);
    return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  }
  base::MutexLock lock(captured->mutex);
  if (captured->ended.load()) return CUDA_ERROR_INVALID_VALUE;  // just now
  captured->streams.push_back(stream);
  Retain(stream);
  stream->capture.store(captured);
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
