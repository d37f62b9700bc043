// Whether other processes may write memory of this one at any time.
#pragma once

#include <cstdint>

namespace longwire::shim {

// True if part of the range lies in a mapping that is shared and may be written (MAP_SHARED of a
// file, of /dev/shm, of an anonymous one; System V). False where the system does not tell.
bool IsSharedMapping(uint64_t address, uint64_t bytes);

}  // namespace longwire::shim
