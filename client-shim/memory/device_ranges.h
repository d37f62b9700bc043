// Ranges of device memory, and the table of those that are not this client's own allocations.
#pragma once

#include <cstdint>

#include "client-shim/context/context.h"

namespace longwire::shim {

inline constexpr uint64_t kGlobalIds = uint64_t{1} << 40;  // ids of globals and graph memory

struct DeviceRange {
  uint64_t address = 0;  // of the whole allocation
  uint64_t bytes = 0;
  uint64_t id = 0;  // as CU_POINTER_ATTRIBUTE_BUFFER_ID
  Context* context = nullptr;
  uint32_t context_number = 0;
  bool managed = false;
  bool foreign = false;  // the program's own mapping, or the driver's memory
};

// Memory that the worker's driver allocated (nodes of graphs) or that the program maps itself.
void AddForeignRange(uint64_t address, uint64_t bytes, Context* context);
void RemoveForeignRange(uint64_t address);
bool FindForeignRange(uint64_t address, DeviceRange* range);

}  // namespace longwire::shim
