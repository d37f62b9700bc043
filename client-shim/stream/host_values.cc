#include "client-shim/stream/host_values.h"

#include <atomic>

#include "base/try.h"
#include "client-shim/session/session.h"
#include "client-shim/stream/callbacks.h"
#include "client-shim/stream/capture.h"
#include "client-shim/stream/host_writes.h"
#include "longwire/calls.h"

namespace longwire::shim {
namespace {

template <class T>
void Store(uint64_t address, uint64_t value) {
  std::atomic_ref<T>(*reinterpret_cast<T*>(address)).store(static_cast<T>(value));
}

template <class T>
bool Holds(const HostValue& wait) {
  T now = std::atomic_ref<T>(*reinterpret_cast<T*>(wait.address)).load();
  auto value = static_cast<T>(wait.value);
  switch (wait.flags & CU_STREAM_WAIT_VALUE_NOR) {
    case CU_STREAM_WAIT_VALUE_EQ:
      return now == value;
    case CU_STREAM_WAIT_VALUE_AND:
      return (now & value) != 0;
    case CU_STREAM_WAIT_VALUE_NOR:
      return static_cast<T>(~(now | value)) != 0;
    default:  // greater or equal, in a circle
      return static_cast<T>(now - value) <= static_cast<T>(~T{0}) / 2;
  }
}

bool IsThere(const void* data) {
  const auto* wait = static_cast<const HostValue*>(data);
  return wait->bytes == 8 ? Holds<uint64_t>(*wait) : Holds<uint32_t>(*wait);
}

void CUDA_CB WriteOrPass(void* data) {
  const auto* value = static_cast<const HostValue*>(data);
  if (value->kind == HostValueKind::kWrite) {
    value->bytes == 8 ? Store<uint64_t>(value->address, value->value)
                      : Store<uint32_t>(value->address, value->value);
  }
  delete value;
}

}  // namespace

CUresult QueueHostValue(Stream* stream, const HostValue& value) {
  if (stream->capture.load() != nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  Where where;
  LONGWIRE_TRY(OpenWhere(stream, &where));
  bool waits = value.kind == HostValueKind::kWait;
  auto* kept = new HostValue(value);
  calls::lwHostFunction call;
  call.ticket = waits ? NewHostWait(IsThere, WriteOrPass, kept, where.context)
                      : NewHostFunction(WriteOrPass, kept, where.context, false);
  uint64_t position = where.session->Submit(where, call);
  if (position == ClientSession::kNoPosition) {
    DropHostFunction(call.ticket);
    delete kept;
    return ClientSession::NotQueued();
  }
  // Behind a wait lies what the program writes meanwhile, wherever that is.
  NoteHostWrite(stream, position, waits ? 0 : value.address, waits ? kAnywhere : value.bytes,
                WriteOrder::kInStream);
  where.session->EndsWith(stream, position, {Ending::Kind::kHostFunction, call.ticket});
  return CUDA_SUCCESS;
}

}  // namespace longwire::shim
