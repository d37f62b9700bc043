// Pools of managed memory and of pinned memory. The memory is allocated at the call, and freed once
// the streams have passed the free.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <vector>

#include "client-shim/context/context.h"

namespace longwire::shim {

enum class PoolKind : uint8_t { kDevice, kManaged, kHost };

// Names a default pool: one of each kind for each location of its memory. For managed memory that
// is the preferred location.
struct PoolPlace {
  static constexpr int kAnywhere = -1;
  static constexpr int kOnHost = -2;

  PoolKind kind = PoolKind::kDevice;
  int device = 0;  // or one of the two constants
  auto operator<=>(const PoolPlace&) const = default;
};

// The program's location and type as a PoolPlace. CUDA_ERROR_INVALID_VALUE for memory of which
// there are no pools, CUDA_ERROR_NOT_SUPPORTED for pinned memory of one NUMA node and for managed
// memory at an unknown location.
CUresult PlaceOf(const CUmemLocation& location, CUmemAllocationType type, PoolPlace* place);

// For managed and pinned memory.
CUresult AllocateOfKind(PoolKind kind, Context* context, uint64_t bytes, uint64_t* address);
// Frees the memory once `before` has finished, at one of the next calls. Releases the streams.
void FreeBehind(PoolKind kind, uint64_t address, std::vector<StreamPoint> before);
// Frees the memory whose earlier work has finished.
void FreeWhatIsDue();

}  // namespace longwire::shim
