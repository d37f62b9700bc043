// Streams as the program's calls use them: what a handle means to a call that gives the stream
// work, and the waits that the program sees.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <span>

#include "client-shim/context/context.h"
#include "client-shim/stream/stream.h"

namespace longwire::shim {

// The stream of a handle (FindStream), for a call that may give it work: waits for what natively
// would have been before. CUDA_ERROR_INVALID_HANDLE, _INVALID_CONTEXT, or the context's own error.
CUresult ResolveStream(CUstream handle, Stream** stream);

// As ResolveStream, for calls that give the stream no work.
CUresult ResolveForWait(CUstream handle, Stream** stream);

// As ResolveStream, for calls that may come in any number: waits while the stream has no room. The
// caller holds no lock.
CUresult ResolveForWork(CUstream handle, Stream** stream);

// Waits while the stream has no room. The context's error, if any.
[[nodiscard]] CUresult WaitForRoom(Stream* stream);

// Waits until everything handed to the stream up to `position` has finished, and then what the
// device printed is printed, and what it wrote into the program's memory is there. The context's
// error, if any.
[[nodiscard]] CUresult WaitForStream(Stream* stream, uint64_t position);

// As PollStream; with success what the device wrote into the program's memory is there.
CUresult QueryStream(Stream* stream, uint64_t position);

// Waits for all of it, as WaitForStream, and releases the streams. The first error of their
// contexts, if any.
[[nodiscard]] CUresult WaitForWork(std::span<StreamPoint> points);

// Waits for every stream of the context.
[[nodiscard]] CUresult SynchronizeContext(Context* context);

}  // namespace longwire::shim
