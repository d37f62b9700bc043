// Functions of the program that a stream calls.
#pragma once

#include "client-shim/session/session.h"
#include "client-shim/stream/stream.h"

namespace longwire::shim::hand {

// Queues the host function of this ticket (client-shim/stream/callbacks.h) in the stream; it runs
// when the stream reaches it. Without room in the log the ticket is dropped.
CUresult AddHostFunction(Stream* stream, const Where& where, uint64_t ticket);

}  // namespace longwire::shim::hand
