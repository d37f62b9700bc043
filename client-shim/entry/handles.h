// Handles on the wire. Objects that this client numbers are sent by their number. Handles of other
// objects are the worker's numbers.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <type_traits>

namespace longwire::shim {

inline constexpr uint64_t kNoSuchStream = UINT64_MAX;

// 0 for an invalid handle.
uint64_t ToWire(CUstream stream);  // kNoSuchStream for an invalid handle
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

// True if the worker has chosen this number: the client's numbers have no highest bit.
template <class Handle>
requires std::is_pointer_v<Handle>
bool IsWorkersHandle(Handle handle) { return reinterpret_cast<uint64_t>(handle) >> 63 != 0; }

// Devices are sent by the session's numbers. The program may see only some of them
// (CUDA_VISIBLE_DEVICES).
int32_t ToWireDevice(CUdevice device);                          // -1 if there is no such device
void FromWireDevice(int32_t session_device, CUdevice* device);  // -1 for one that is not visible

}  // namespace longwire::shim
