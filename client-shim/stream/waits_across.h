// Order between streams of different servers. Only this process knows both: a stream that waits for
// another server's work, or for something that this process does, is held by its worker as by a
// host function, until this process lets it go on. No thread of the program waits for that.
#pragma once

#include <cuda.h>

#include <cstdint>

#include "client-shim/session/session.h"
#include "client-shim/stream/stream.h"

namespace longwire::shim {

// The stream's later work waits until `awaited`, a stream of another server, has got to the
// position. If that does not happen any more, as its context or server has failed, all contexts of
// the waiting stream's server fail: else wrong values were a success.
CUresult WaitAcross(Stream* stream, const Where& where, Stream* awaited, uint64_t position);

// The function runs when the stream gets there, and the later work waits until it has. It may wait
// for work of other streams. *position is the call's. If the call could not be queued, the function
// does not run. `at_once`: where all that the stream would wait for has finished already, it runs
// without asking the server, and the stream counts as finished when it has.
CUresult RunAcross(Stream* stream, CUhostFn function, void* data, bool at_once, uint64_t* position);

}  // namespace longwire::shim
