// Functions of the program that a stream calls.
#include "client-shim/calls/stream/stream_callback.h"

#include "base/try.h"
#include "client-shim/stream/callbacks.h"
#include "client-shim/stream/capture.h"
#include "client-shim/stream/host_writes.h"
#include "client-shim/stream/program_streams.h"
#include "longwire/calls.h"
#include "longwire/shim_hand_written.h"

namespace longwire::shim::hand {

CUresult AddHostFunction(Stream* stream, const Where& where, uint64_t ticket) {
  calls::lwHostFunction call;
  call.ticket = ticket;
  uint64_t position = where.session->Submit(where, call);
  if (position == ClientSession::kNoPosition) {
    DropHostFunction(ticket);
  } else if (where.flags == 0) {
    NoteHostWrite(stream, position, 0, kAnywhere, WriteOrder::kInStream);
    where.session->EndsWith(stream, position, {Ending::Kind::kHostFunction, ticket});
  }
  return ClientSession::Queued(position);
}

CUresult cuStreamAddCallback(CUstream hStream, CUstreamCallback callback, void* userData,
                             unsigned int flags) {
  if (callback == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  Stream* stream = nullptr;
  Where where;
  LONGWIRE_TRY(ResolveStream(hStream, &stream));
  LONGWIRE_TRY(RefuseWhileCapturing(stream));
  LONGWIRE_TRY(OpenWhere(stream, &where));
  return AddHostFunction(stream, where, NewStreamCallback(callback, hStream, stream, userData));
}

}  // namespace longwire::shim::hand
