// Events of whole contexts: recorded after all work that was queued in a context, or waited for by
// all work that will be queued in it.
#pragma once

#include <cuda.h>

#include "client-shim/context/context.h"
#include "client-shim/stream/event.h"

namespace longwire::shim {

// Of a green context, only its own streams count. Errors as cuCtxRecordEvent and cuCtxWaitEvent:
// CUDA_ERROR_INVALID_HANDLE for an event of another context; CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
// during a capture, which becomes invalid.
CUresult RecordContext(Context* context, Event* event);
CUresult MakeContextWait(Context* context, Event* event);

// Queues the waits that the stream's context and green context ask for, unless the stream has them.
void PassGates(Stream* stream);
// The context ends: its work no longer waits for an event.
void OpenGate(Context* context);

}  // namespace longwire::shim
