// What generated forwarding asks of the client: here a call is encoded, dispatched in this process
// and its reply decoded.
#pragma once

#include <cstdint>
#include <vector>

#include "longwire/shim_hand_written.h"
#include "wire/buffer.h"

namespace longwire::shim {

// Handles are their ids.
template <class Handle>
uint64_t ToWire(Handle handle) {
  return reinterpret_cast<uint64_t>(handle);
}
template <class Handle>
void FromWire(uint64_t id, Handle* handle) {
  *handle = reinterpret_cast<Handle>(id);
}

// The client's devices are the worker's from the fifth on.
inline int32_t ToWireDevice(CUdevice device) { return device < 0 ? -1 : device + 4; }
inline void FromWireDevice(int32_t ordinal, CUdevice* device) { *device = ordinal - 4; }

struct ReplyBytes {
  std::vector<std::byte> bytes;
};

// Dispatches an encoded call; fills `reply` with the encoded reply.
CUresult Deliver(CallId id, uint64_t stream, wire::Writer& call, std::vector<std::byte>* reply);

template <class Call>
CUresult CallAndWait(const Call& call, uint64_t stream, typename Call::Reply* reply,
                     ReplyBytes* bytes, CUdevice /*device*/ = -1) {
  wire::Writer writer;
  call.Encode(writer);
  const CUresult result = Deliver(Call::kId, stream, writer, &bytes->bytes);
  if (result != CUDA_SUCCESS) return result;
  wire::Reader reader(bytes->bytes);
  return reply->Decode(reader) == wire::WireResult::kOk ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN;
}

template <class Call>
CUresult Submit(const Call& call, uint64_t stream) {
  wire::Writer writer;
  std::vector<std::byte> reply;
  call.Encode(writer);
  return Deliver(Call::kId, stream, writer, &reply);
}

}  // namespace longwire::shim
