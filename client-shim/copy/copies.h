// Copies and memsets of every form, reduced to one: two sides and an extent.
#pragma once

#include <cuda.h>

#include <cstdint>

#include "client-shim/copy/copy_sides.h"
#include "client-shim/stream/stream.h"
#include "longwire/calls.h"

namespace longwire::shim {

// Whether copies from there read this process's memory, and not its counterpart on the device.
bool IsProgramMemory(uint64_t address);

// The region of a resolved side in the program's memory.
HostPlace HostSide(const CopySide& side, const Extent& extent);

enum class Waits { kAsync, kSync };
// When the program's memory is read. kInOrder: when the stream reaches the copy, if the memory is
// pinned. kNow: before the call returns. kUsual: in order, but a copy within the program's memory
// is made before the call returns; copies of a batch are not.
enum class Reads { kUsual, kInOrder, kNow };
// Peer copies name the contexts of their sides, and cannot be captured.
enum class Peers { kNo, kYes };

// A resolved side, as records name it.
calls::Place WirePlace(const CopySide& side, const Extent& extent);

CUresult Copy(const CopySide& destination, const CopySide& source, const Extent& extent,
              CUstream stream, Waits waits, Peers peers = Peers::kNo, Reads reads = Reads::kUsual);

// The sides of the driver's struct. CUDA_ERROR_INVALID_VALUE for an unknown kind of memory.
CUresult SidesOf(const CUDA_MEMCPY3D& copy, CopySide* destination, CopySide* source);

// The copy of a graph's node; refuses what the driver would refuse. `device`: of the node's
// context.
CUresult DescribeNodeCopy(CopySide destination, CopySide source, const Extent& extent, int device,
                          NodeCopy* node);

CUresult Memset(uint64_t address, uint64_t pitch, uint32_t element_bytes, uint32_t value,
                uint64_t width, uint64_t rows, CUstream stream, Waits waits);

}  // namespace longwire::shim
