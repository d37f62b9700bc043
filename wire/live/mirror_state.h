// A state of the program's memory that differs from the last one in more than one word. Kernels
// must see all of it or nothing, as nobody knows which of the words is the flag
// (docs/decisions/0095-whole-states.md).
#pragma once

#include <cstdint>

#include "base/memory_sizes.h"

namespace longwire::wire {

// Bytes of the deltas of one state (lwMirrorState) together. (A kernel of the device stores it
// within a time slice of its own.)
inline constexpr uint64_t kStateBytes = uint64_t{8} << 20;

}  // namespace longwire::wire
