// Stream capture as the program sees it. Which stream captures and what is illegal beside it is all
// decided here; the worker begins every capture in the relaxed mode.
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
  Context* owner = nullptr;  // as the stream's
  bool counts_as_blocking = false;
  CUgraph graph = nullptr;  // that the nodes are added to; null: a new one
  std::atomic<bool> invalidated{false};
  std::atomic<bool> ended{false};
  base::Mutex mutex{base::ranks::kCapture};
  std::vector<Stream*> streams LONGWIRE_GUARDED_BY(mutex);
};

// How a call handed to this stream is to be marked in the log. Refuses the legacy stream beside a
// capture (CUDA_ERROR_STREAM_CAPTURE_IMPLICIT) and streams of a broken capture (_INVALIDATED).
CUresult OpenWhere(Stream* stream, Where* where);

// For calls that cannot be captured (queries, synchronisation, stream callbacks, launches of
// graphs): breaks the capture and returns CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED if the stream is
// capturing.
CUresult RefuseWhileCapturing(Stream* stream);
// The same for a whole context, with its green ones, or a green one.
CUresult RefuseContextWhileCapturing(Context* context);
// Whether a call that is potentially unsafe may not be made now: by the thread's captures and its
// mode.
bool IsUnsafeCallForbidden();
// For such calls: those marked so, and those of which it depends on their arguments.
CUresult RefuseUnsafeCall();

void Invalidate(Capture* capture);

// The capture goes on from now on, or has ended: what is illegal beside it.
void EnlistCapture(Capture* capture);
void DelistCapture(Capture* capture);

// A stream waits for an event: it joins the capture in which the event was recorded, if any. That
// of a capture which has ended is no event to wait for (CUDA_ERROR_INVALID_VALUE).
CUresult JoinCapture(Stream* stream, Capture* captured);

CUstreamCaptureStatus CaptureStatus(Stream* stream, uint64_t* id);

}  // namespace longwire::shim
