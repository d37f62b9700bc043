// LONGWIRE_TRACE=allocations: a line for each piece of device memory that comes or goes.
#pragma once

#include <cstdint>

namespace longwire::shim {

// What the program has in all is counted only while it is traced.
void TraceAllocation(int device, uint64_t address, uint64_t bytes);
void TraceFree(int device, uint64_t address, uint64_t bytes);

}  // namespace longwire::shim
