// Copies whose bytes come or go in pieces: to and from the client, and over bridges to other
// servers.
#pragma once

#include <cstdint>

#include "longwire/calls.h"
#include "server/worker/calls/call_context.h"

namespace longwire::worker {

// Where the bytes of a place go.
struct PiecesTo {
  uint64_t transfer = 0;
  uint32_t bridge = 0;    // 0: to the client
  bool by_lanes = false;  // else in the log
};
// kNotYet until all of them have been copied for sending.
CUresult SendPieces(CallContext& context, const calls::Place& place, uint64_t bytes,
                    const PiecesTo& to);

// Copies what has come of the transfer to its place; kNotYet while some is missing.
CUresult ReceivePieces(CallContext& context, const calls::lwCopyToDevice& call);

}  // namespace longwire::worker
