// Reads memory of this process that may be gone or protected: then the read fails, and no signal is
// raised.
#pragma once

#include <sys/uio.h>

#include <vector>

namespace longwire::shim {

// Copies each range to the target with the same index, which is as long. False if not all could be
// read, or the system does not let the process read itself in this way.
bool ReadOwnMemory(const std::vector<iovec>& ranges, const std::vector<iovec>& targets);

}  // namespace longwire::shim
