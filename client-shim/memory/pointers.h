// Finds out what an address is. Device memory lies in the windows, or where the worker's driver
// placed something and reported it. Everything else is the program's own memory.
#pragma once

#include <cstdint>

#include "client-shim/memory/device_ranges.h"

namespace longwire::shim {

// The allocation, global or graph memory that contains the address.
bool FindDeviceRange(uint64_t address, DeviceRange* range);

// Whether it is the start of memory that a graph allocated, at an address of the worker's driver.
bool IsGraphMemory(uint64_t address);

// True if the address cannot be the program's own memory.
bool IsDeviceAddress(uint64_t address);

// CUDA_SUCCESS if all of it is device memory: part of one allocation, or of adjacent mappings that
// the program made.
CUresult CheckDeviceRange(uint64_t address, uint64_t bytes);

// CU_POINTER_ATTRIBUTE_SYNC_MEMOPS of the allocation that contains the address: with it,
// synchronous copies between device memories and synchronous memsets wait, too.
// CUDA_ERROR_INVALID_VALUE if there is no allocation.
CUresult SetSyncMemops(uint64_t address, bool on);
bool HasSyncMemops(uint64_t address);

}  // namespace longwire::shim
