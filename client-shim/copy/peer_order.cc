#include "client-shim/copy/peer_order.h"

#include "base/try.h"
#include "client-shim/context/context.h"
#include "client-shim/stream/stream.h"

namespace longwire::shim {
namespace {

// A side that names no context is the stream's, or the program's own memory.
int DeviceOf(const Stream* stream, const CopySide& side) {
  return side.device < 0 ? stream->context->device : side.device;
}

}  // namespace

bool HasOtherDevice(const Stream* stream, const CopySide& destination, const CopySide& source) {
  const int own = stream->context->device;
  return DeviceOf(stream, destination) != own || DeviceOf(stream, source) != own;
}

CUresult AwaitDevices(const Stream* stream, const CopySide& destination, const CopySide& source) {
  const int own = stream->context->device;
  const int to = DeviceOf(stream, destination), from = DeviceOf(stream, source);
  for (Context* context : LiveContexts()) {
    const int device = context->device;
    if (device != own && device != to && device != from) continue;
    LONGWIRE_TRY(AwaitWork(UnfinishedWork(context)));
  }
  return CUDA_SUCCESS;
}

}  // namespace longwire::shim
