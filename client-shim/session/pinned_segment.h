// The segment that program and worker share if the worker runs on this host. The program's pinned
// memory lies in parts of it, and the worker's driver copies directly from and to these parts.
#pragma once

#include <cstddef>
#include <cstdint>

#include "wire/socket.h"

namespace longwire::shim {

// Takes over the segment from the opening's reply. False if the file is not sealed against
// resizing. `base`: where kernels reach its parts, in addresses that this process keeps free for
// them; 0: they do not reach it.
bool AdoptSegment(wire::Descriptor file, uint64_t bytes, uint64_t base);

// Memory that kernels reach itself, at the same addresses as the program: parts of the segment,
// and what of it is no part now.
bool IsLive(uint64_t address);
// Where such a part is to be mapped; 0 if kernels do not reach the segment.
uint64_t LiveAddress(uint64_t offset);
// Whether there is memory that a running kernel may change under the program's eyes.
bool AnyLive();
// One more allocation is live, or (-1) one less.
void CountLive(int change);

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
