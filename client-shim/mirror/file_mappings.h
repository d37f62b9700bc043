// Mappings of files: also memory files, and memory that is shared without a file, which is one of
// the kernel's. Whoever else has the file may write it, and shorten it.
#pragma once

#include <cstdint>

namespace longwire::shim {

// Whether any page of the range is one.
bool IsFileMapping(uint64_t address, uint64_t bytes);

// Whether any page of it is shared and may be written.
bool IsSharedMapping(uint64_t address, uint64_t bytes);

}  // namespace longwire::shim
