// Copies between two places of the program's own memory, which the driver makes, too.
#pragma once

#include "client-shim/copy/copies.h"

namespace longwire::shim {

// Pinned, registered or exposed memory of the program.
bool IsKnownHost(uint64_t address);

// What a resolved side is in the program's memory. `named`: its address as the program gave it,
// which mirrored memory has on the device. kPooled: of a pool of pinned memory.
enum class HostKind { kNone, kPageable, kLocked, kPooled };
HostKind KindInHost(const CopySide& side, uint64_t named);
// Within the program's memory NVIDIA's driver copies before the call returns, also where it is
// asked not to wait; but memory of pools in the stream's order (docs/decisions/0083).
inline bool IsAtOnce(HostKind to, HostKind from) {
  if (to == HostKind::kNone || from == HostKind::kNone) return false;
  if (to == HostKind::kPageable || from == HostKind::kPageable) return true;
  return to != HostKind::kPooled && from != HostKind::kPooled;
}

// Behind the work that the stream's next work would be behind. In a capture that does not wait it
// becomes a node of the graph.
CUresult CopyInHost(Stream* stream, const CopySide& destination, const CopySide& source,
                    const Extent& extent, Waits waits);

}  // namespace longwire::shim
