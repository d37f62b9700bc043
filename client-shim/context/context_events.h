// Events of whole contexts: recorded behind everything that a context has been given, or waited for
// by everything that it will be given.
#pragma once

#include <cuda.h>

#include "client-shim/context/context.h"
#include "client-shim/stream/event.h"

namespace longwire::shim {

// Of a green context: its own streams. Errors as cuCtxRecordEvent and cuCtxWaitEvent:
// CUDA_ERROR_INVALID_HANDLE for an event of another context, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
// beside a capture, which is broken.
CUresult RecordContext(Context* context, Event* event);
CUresult MakeContextWait(Context* context, Event* event);

// Lets the stream wait for what its context and its green context wait for, unless it does already.
void PassGates(Stream* stream);
// The context ends: nothing of it waits any more.
void OpenGate(Context* context);

}  // namespace longwire::shim
