// A segment that the worker has mapped, too, when it runs on this host: the program's pinned memory
// lies in parts of it, and the worker's driver copies from and to them without a way between.
#pragma once

#include <cstddef>
#include <cstdint>

#include "wire/socket.h"

namespace longwire::shim {

// What the opening handed over. False if the file could change its size.
bool AdoptSegment(wire::Descriptor file, uint64_t bytes);

inline constexpr uint64_t kNoPart = UINT64_MAX;

// A part of the segment, pinned by the worker's driver: a multiple of 2 MiB. kNoPart if there is no
// segment, no room in it, or the driver cannot. Waits for the worker, as all that follows.
uint64_t TakePart(uint64_t bytes);
// Nothing is mapped there any more, and work that uses it is over. kNoPart: nothing happens.
void GivePart(uint64_t offset, uint64_t bytes);

// Maps the part anywhere; nullptr if that fails.
std::byte* MapPart(uint64_t offset, uint64_t bytes);
// Maps the part at the address, in the place of what is there.
bool MapPart(uint64_t offset, uint64_t bytes, uint64_t address);

}  // namespace longwire::shim
