// Pools of what is not a device's own memory: managed memory and pinned memory of the program. It
// comes at the call, and goes when the streams have got past the free.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <vector>

#include "client-shim/context/context.h"

namespace longwire::shim {

enum class PoolKind : uint8_t { kDevice, kManaged, kHost };

// Which of the pools that every program has: those of each device, and for the others one for each
// place where memory may be preferred to be.
struct PoolPlace {
  static constexpr int kAnywhere = -1;
  static constexpr int kOnHost = -2;

  PoolKind kind = PoolKind::kDevice;
  int device = 0;  // or one of the two
  auto operator<=>(const PoolPlace&) const = default;
};

// What the program says in its own words. CUDA_ERROR_INVALID_VALUE for what no pool is made of,
// CUDA_ERROR_NOT_SUPPORTED for pinned memory of one node of the program's host, and for managed
// memory at a place that is none.
CUresult PlaceOf(const CUmemLocation& location, CUmemAllocationType type, PoolPlace* place);

// Of the two kinds that are made here.
CUresult AllocateOfKind(PoolKind kind, Context* context, uint64_t bytes, uint64_t* address);
// Gives the memory back when the work before is done, at one of the next calls. Releases the
// streams.
void FreeBehind(PoolKind kind, uint64_t address, std::vector<StreamPoint> before);
// Gives back what is due.
void FreeWhatIsDue();

}  // namespace longwire::shim
