// A copy as two sides and an extent, and as a graph's node holds it.
#pragma once

#include <cuda.h>

#include <cstdint>

#include "client-shim/session/transfers.h"
#include "longwire/calls.h"

namespace longwire::shim {

// One side of a copy: an array, or linear memory of the device or the program. The address shows
// which of the two, unless `kind` requires one.
struct CopySide {
  enum class Kind { kHost, kDevice, kArray, kEither };
  Kind kind = Kind::kEither;
  uint64_t address = 0;  // of linear memory
  CUarray array = nullptr;
  uint64_t x_bytes = 0;
  uint64_t y = 0;
  uint64_t z = 0;
  uint64_t pitch = 0;   // bytes from row to row; 0: the width
  uint64_t height = 0;  // rows from slice to slice; 0: the rows
  int device = -1;      // of the context that a peer copy names; -1: the stream's

  static CopySide Host(const void* address) {
    CopySide side;
    side.kind = Kind::kHost;
    side.address = reinterpret_cast<uint64_t>(address);
    return side;
  }
  static CopySide Device(uint64_t address) {
    CopySide side;
    side.kind = Kind::kDevice;
    side.address = address;
    return side;
  }
  static CopySide Either(uint64_t address) {
    CopySide side;
    side.address = address;
    return side;
  }
  static CopySide Array(CUarray array, uint64_t offset) {
    CopySide side;
    side.kind = Kind::kArray;
    side.array = array;
    side.x_bytes = offset;
    return side;
  }
};

struct Extent {
  uint64_t width = 0;  // bytes
  uint64_t rows = 1;
  uint64_t slices = 1;
};

// A copy as a graph's node holds it, all but the transfers of the sides in the program's memory.
struct NodeCopy {
  calls::MemcpyNode copy;
  bool to_program = false, from_program = false;
  HostPlace destination, source;  // of those sides
};

}  // namespace longwire::shim
