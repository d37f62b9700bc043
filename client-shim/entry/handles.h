// Handles as they travel. Objects that this client numbers go by their number; everything else is
// the worker's own number already, which the program carries as its handle.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <type_traits>

namespace longwire::shim {

inline constexpr uint64_t kNoSuchStream = UINT64_MAX;

// 0 for a handle that is none.
uint64_t ToWire(CUstream stream);  // kNoSuchStream for a handle that is none
uint64_t ToWire(CUevent event);
uint64_t ToWire(CUcontext context);
uint64_t ToWire(CUgreenCtx green);
uint64_t ToWire(CUfunction function);
uint64_t ToWire(CUkernel kernel);
uint64_t ToWire(CUmodule module);
uint64_t ToWire(CUlibrary library);
uint64_t ToWire(CUgraph graph);
uint64_t ToWire(CUgraphExec exec);

template <class Handle>
requires std::is_pointer_v<Handle> uint64_t ToWire(Handle handle) {
  return reinterpret_cast<uint64_t>(handle);
}

template <class Handle>
requires std::is_pointer_v<Handle>
void FromWire(uint64_t number, Handle* handle) { *handle = reinterpret_cast<Handle>(number); }

// What the worker has numbered: the client's own numbers are below.
template <class Handle>
requires std::is_pointer_v<Handle>
bool IsWorkersHandle(Handle handle) { return reinterpret_cast<uint64_t>(handle) >> 63 != 0; }

// Devices go by the session's numbers, of which the program sees a choice (CUDA_VISIBLE_DEVICES).
int32_t ToWireDevice(CUdevice device);                          // -1 for a device that is none
void FromWireDevice(int32_t session_device, CUdevice* device);  // -1 for one that is not seen

}  // namespace longwire::shim
