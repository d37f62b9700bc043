// Stream capture. The client decides which streams capture and which calls are illegal meanwhile;
// the worker begins every capture in relaxed mode.
#pragma once

#include <cuda.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "client-shim/session/session.h"
#include "client-shim/stream/stream.h"
#include "client-shim/support/threads.h"

namespace longwire::shim {

struct Capture {
  uint64_t id = 0;
  CaptureMode mode = CaptureMode::kGlobal;
  uint32_t thread = 0;  // number of the thread that began it
  Stream* origin = nullptr;
  Context* context = nullptr;
  Context* owner = nullptr;  // as Stream::owner
  bool counts_as_blocking = false;
  CUgraph graph = nullptr;  // the graph to which nodes are added; null: a new one
  std::atomic<bool> invalidated{false};
  std::atomic<bool> ended{false};
  base::Mutex mutex{base::ranks::kCapture};
  std::vector<Stream*> streams LONGWIRE_GUARDED_BY(mutex);
};

// Fills in the header fields for a call of this stream. Refuses the legacy stream during a capture
// (CUDA_ERROR_STREAM_CAPTURE_IMPLICIT) and streams of an invalidated capture (_INVALIDATED).
CUresult OpenWhere(Stream* stream, Where* where);

// For calls that cannot be captured (queries, synchronisation, stream callbacks, launches of
// graphs): if the stream captures, invalidates the capture and returns
// CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED.
CUresult RefuseWhileCapturing(Stream* stream);
// The same for all streams of a context and its green contexts, or of one green context.
CUresult RefuseContextWhileCapturing(Context* context);
// True if captures, and the calling thread's capture mode, forbid potentially unsafe calls now.
bool IsUnsafeCallForbidden();
// For potentially unsafe calls: those marked so in proto/, and those that are unsafe with certain
// arguments.
CUresult RefuseUnsafeCall();

void Invalidate(Capture* capture);

// The capture begins or has ended: updates which calls are illegal.
void EnlistCapture(Capture* capture);
void DelistCapture(Capture* capture);

// For a wait for an event: the stream joins the capture in which the event was recorded, if any.
// CUDA_ERROR_INVALID_VALUE if that capture has ended.
CUresult JoinCapture(Stream* stream, Capture* captured);

CUstreamCaptureStatus CaptureStatus(Stream* stream, uint64_t* id);

}  // namespace longwire::shim
