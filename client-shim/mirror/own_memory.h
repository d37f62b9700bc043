// Memory of this process that may be gone or protected: that is an answer here, and no signal.
#pragma once

#include <sys/uio.h>

#include <cstdint>
#include <vector>

namespace longwire::shim {

// Copies each range to the target with the same index, which is as long. False if not all could be
// read, or the system does not let the process read itself in this way.
bool ReadOwnMemory(const std::vector<iovec>& ranges, const std::vector<iovec>& targets);

// Whether the word, which lies in one page, may be written. It stays as it is. Before Linux 5.14
// the answer is always yes.
bool MayWriteOwnMemory(uint64_t address);

}  // namespace longwire::shim
