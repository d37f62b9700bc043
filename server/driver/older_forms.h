// What Longwire needs of a driver and drivers before CUDA 13.0 have in older forms only. The oldest
// that is served is that of CUDA 12.2 (wire/limits.h).
#pragma once

#include <string>
#include <vector>

#include "longwire/driver_table.h"

namespace longwire {

// Puts the older form of a function into the entry of a newer one that the driver lacks. Where the
// older one cannot say what the newer one can, as what an edge of a graph waits for, the entry
// answers CUDA_ERROR_NOT_SUPPORTED. Takes from `missing` what programs can use nevertheless.
//
// The entries belong to the process, as its driver does: the last table given here serves them.
void UseOlderForms(DriverTable* table, std::vector<std::string>* missing);

}  // namespace longwire
