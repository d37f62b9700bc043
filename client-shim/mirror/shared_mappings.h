// Finds memory of this process that other processes may write at any time.
#pragma once

#include <cstdint>

namespace longwire::shim {

// True if part of the range lies in a mapping that is shared and may be written (MAP_SHARED of a
// file, of /dev/shm, of an anonymous one; System V). False where the system does not show it.
bool IsSharedMapping(uint64_t address, uint64_t bytes);

}  // namespace longwire::shim
