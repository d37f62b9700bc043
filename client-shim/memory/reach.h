// Which devices can access which memory. Peer access (peers.h) opens all allocations of a device,
// cuMemSetAccess single mappings that the program made.
#pragma once

#include <cstdint>

namespace longwire::shim {

// True if kernels, memsets and memory operations of the device's streams may access the address.
bool Reaches(int device, uint64_t address);
// The same for copies, which need no access to plain allocations.
bool CopyReaches(int device, uint64_t address);

}  // namespace longwire::shim
