// Copies between packed host bytes and memory or an array of a device; a copy may be cut at any
// byte. Memory is mapped for its own device only. In another device's stream the driver therefore
// needs a peer copy, with a context of the memory's device.
#pragma once

#include <cstdint>

#include "longwire/calls.h"
#include "server/worker/support/driver.h"

namespace longwire::worker {

// A place with its array resolved.
struct CopyPlace {
  uint64_t address = 0;
  CUarray array = nullptr;
  std::byte* host = nullptr;  // not null: pinned memory of this process instead
  uint64_t x_bytes = 0, y = 0, z = 0;
  uint64_t pitch = 0;   // bytes
  uint64_t height = 0;  // rows of a slice
  uint64_t width_bytes = 0, rows = 0, slices = 0;
  CUcontext peer = nullptr;  // a context of its device, if that is not the stream's device

  uint64_t bytes() const { return width_bytes * rows * slices; }
};

struct CopyStream {
  CUstream handle = nullptr;
  CUcontext context = nullptr;
};

// False if extents overflow or are impossible.
bool MakePlace(const calls::Place& place, CUarray array, uint64_t bytes, CopyPlace* made);

enum class CopyDirection { kToDevice, kToHost };

// Copies bytes [offset, offset + bytes) of the packed image of `place` from or to `host`.
CUresult CopyPacked(const DriverTable& driver, CopyStream stream, const CopyPlace& place,
                    uint64_t offset, uint64_t bytes, std::byte* host, CopyDirection direction);

// Both sides have the same shape. At most one of them is host memory.
CUresult CopyBetween(const DriverTable& driver, CopyStream stream, const CopyPlace& to,
                     const CopyPlace& from);

// The same as parameters of a graph's node. A side whose `host` is not null is packed there.
CUDA_MEMCPY3D DescribeCopy(const CopyPlace& to, std::byte* to_host, const CopyPlace& from,
                           std::byte* from_host);

}  // namespace longwire::worker
