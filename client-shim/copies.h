// Copies and memsets of every form, reduced to one: two sides and an extent.
#pragma once

#include <cuda.h>

#include <cstdint>

#include "client-shim/stream.h"
#include "client-shim/transfers.h"
#include "longwire/calls.h"

namespace longwire::shim {

// One side of a copy: linear memory (device or the program's, told apart by its address unless
// `kind` says which it must be) or an array.
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

// Whether copies from there read this process's memory, and not the device's like of it.
bool IsProgramMemory(uint64_t address);

struct Extent {
  uint64_t width = 0;  // bytes
  uint64_t rows = 1;
  uint64_t slices = 1;
};

enum class Waits { kAsync, kSync };
// When the program's memory is read. kInOrder: when the stream gets there, if it is pinned. kNow:
// before the call returns.
enum class Reads { kInOrder, kNow };
// Peer copies name the contexts of their sides, and cannot be captured.
enum class Peers { kNo, kYes };

CUresult Copy(const CopySide& destination, const CopySide& source, const Extent& extent,
              CUstream stream, Waits waits, Peers peers = Peers::kNo,
              Reads reads = Reads::kInOrder);

// The sides of the driver's struct. CUDA_ERROR_INVALID_VALUE for a kind of memory that is none.
CUresult SidesOf(const CUDA_MEMCPY3D& copy, CopySide* destination, CopySide* source);

// A copy as a graph's node holds it, all but the transfers of the sides in the program's memory.
struct NodeCopy {
  calls::MemcpyNode copy;
  bool to_program = false, from_program = false;
  HostPlace destination, source;  // of those sides
};
// What the driver would refuse is refused. `device`: of the node's context.
CUresult DescribeNodeCopy(CopySide destination, CopySide source, const Extent& extent, int device,
                          NodeCopy* node);

CUresult Memset(uint64_t address, uint64_t pitch, uint32_t element_bytes, uint32_t value,
                uint64_t width, uint64_t rows, CUstream stream, Waits waits);

}  // namespace longwire::shim
