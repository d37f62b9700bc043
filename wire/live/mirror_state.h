// A state of the program's memory that differs from the last one in more than one word. Kernels
// must see all of it or nothing, as nobody knows which of the words is the flag
// (docs/decisions/0095-whole-states.md).
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/memory_sizes.h"

namespace longwire::wire {

// Bytes of the deltas of one state (lwMirrorState) together. (A kernel of the device stores it
// within a time slice of its own.)
inline constexpr uint64_t kStateBytes = uint64_t{32} << 20;

// Looks for whole states may be at more than others (kLookBytes): then the device compares. Of what
// has changed at most kChangedBytes come, in blocks of 64.
inline constexpr uint64_t kComparedBytes = uint64_t{1} << 30;
inline constexpr size_t kComparedMirrors = 4096;
inline constexpr uint64_t kChangedBytes = uint64_t{64} << 20;

}  // namespace longwire::wire
