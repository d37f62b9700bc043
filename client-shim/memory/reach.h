// Which devices' work reaches which memory: by peer access (peers.h) a device's allocations, by
// cuMemSetAccess single mappings of the program's own.
#pragma once

#include <cstdint>

namespace longwire::shim {

// True if kernels, memsets and memory operations of the device's streams may touch the address.
bool Reaches(int device, uint64_t address);
// The same for copies, which need no access to plain allocations.
bool CopyReaches(int device, uint64_t address);

}  // namespace longwire::shim
