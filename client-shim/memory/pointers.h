// What an address is. Device memory lies in the windows, or where the worker's driver put something
// and said so; everything else is the program's own.
#pragma once

#include <cstdint>

#include "client-shim/memory/device_ranges.h"

namespace longwire::shim {

// The allocation, global or graph memory that holds the address.
bool FindDeviceRange(uint64_t address, DeviceRange* range);

// Whether it is the start of what a graph allocated, which lies where the worker's driver put it.
bool IsGraphMemory(uint64_t address);

// True if the address cannot be the program's own memory.
bool IsDeviceAddress(uint64_t address);

// CUDA_SUCCESS if all of it is device memory: of one allocation, or of neighbouring mappings of the
// program's own.
CUresult CheckDeviceRange(uint64_t address, uint64_t bytes);

// CU_POINTER_ATTRIBUTE_SYNC_MEMOPS of the allocation that holds the address: with it the waiting
// forms of copies and memsets wait also where they would not, between device memories.
// CUDA_ERROR_INVALID_VALUE if there is none.
CUresult SetSyncMemops(uint64_t address, bool on);
bool HasSyncMemops(uint64_t address);

}  // namespace longwire::shim
