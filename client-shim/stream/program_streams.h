// Streams as the program's calls use them: looks up handles for calls that queue work, and waits
// after which the program sees the device's results.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <span>

#include "client-shim/context/context.h"
#include "client-shim/stream/stream.h"

namespace longwire::shim {

// The stream of a handle (FindStream), for a call that may queue work in it: first waits for early
// copies (AwaitEarlyCopies). CUDA_ERROR_INVALID_HANDLE, _INVALID_CONTEXT, or the context's own
// error.
CUresult ResolveStream(CUstream handle, Stream** stream);

// As ResolveStream, for calls that queue no work.
CUresult ResolveForWait(CUstream handle, Stream** stream);

// As ResolveStream, for calls that a program may queue without limit: waits while the stream has no
// room (StreamRoom). The caller holds no lock.
CUresult ResolveForWork(CUstream handle, Stream** stream);

// Waits while the stream has no room. Returns the context's error, if any.
[[nodiscard]] CUresult WaitForRoom(Stream* stream);

// Waits until all work of the stream up to `position` has finished. Then prints the device's text,
// and fetches what the device wrote into the program's memory. Returns the context's error, if any.
[[nodiscard]] CUresult WaitForStream(Stream* stream, uint64_t position);

// As PollStream; before it returns success, it fetches what the device wrote into the program's
// memory.
CUresult QueryStream(Stream* stream, uint64_t position);

// Waits for all points, as WaitForStream does, and releases the streams. Returns the first error of
// their contexts, if any.
[[nodiscard]] CUresult WaitForWork(std::span<StreamPoint> points);

// Waits for every stream of the context.
[[nodiscard]] CUresult SynchronizeContext(Context* context);

}  // namespace longwire::shim
