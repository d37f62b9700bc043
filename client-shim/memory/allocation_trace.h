// LONGWIRE_TRACE=allocations: a line for each allocation and free of device memory. The same counts
// go into a trace's file.
#pragma once

#include <cstdint>

namespace longwire::shim {

// The program's total is counted only while allocations are traced.
void TraceAllocation(int device, uint64_t address, uint64_t bytes);
void TraceFree(int device, uint64_t address, uint64_t bytes);

}  // namespace longwire::shim
