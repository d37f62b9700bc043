// What probes saw begin and end, out of the memory of a map: for the trace of the program.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "policy/object.h"
#include "probe/api.h"
#include "probe/totals.h"

namespace longwire::probe {

// As Api::spans. `totals` knows the kernels' names.
size_t SpansIn(const policy::MapShape& map, const void* contents, const Totals& totals,
               std::span<Span> found, uint64_t* lost);

}  // namespace longwire::probe
