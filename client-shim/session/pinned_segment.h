// The segment that program and worker share if the worker runs on this host. The program's pinned
// memory lies in parts of it, and the worker's driver copies directly from and to these parts.
#pragma once

#include <cstddef>
#include <cstdint>

#include "wire/socket.h"

namespace longwire::shim {

// Takes over the segment from the opening's reply. False if the file is not sealed against
// resizing.
bool AdoptSegment(wire::Descriptor file, uint64_t bytes);

inline constexpr uint64_t kNoPart = UINT64_MAX;

// Allocates a part of the segment, a multiple of 2 MiB, and has the worker's driver pin it. kNoPart
// if there is no segment, no room in it, or the driver fails. Waits for the worker, as GivePart
// does.
uint64_t TakePart(uint64_t bytes);
// Frees a part, which must be mapped nowhere and used by no unfinished work. Does nothing for
// kNoPart.
void GivePart(uint64_t offset, uint64_t bytes);

// Maps the part at any address; nullptr if that fails.
std::byte* MapPart(uint64_t offset, uint64_t bytes);
// Maps the part at the address and replaces any mapping there.
bool MapPart(uint64_t offset, uint64_t bytes, uint64_t address);

}  // namespace longwire::shim
