// Copies between two places of the program's own memory, which the driver makes, too.
#pragma once

#include "client-shim/copy/copies.h"

namespace longwire::shim {

// Pinned, registered or exposed memory of the program.
bool IsKnownHost(uint64_t address);

// Whether a resolved side lies in the program's memory. `named`: its address as the program gave
// it, which mirrored memory has on the device. Copies between two such places are made before the
// call returns, also where it is asked not to wait, as NVIDIA's driver does.
bool LiesInHost(const CopySide& side, uint64_t named);

// Behind the work that the stream's next work would be behind. In a capture that does not wait it
// becomes a node of the graph.
CUresult CopyInHost(Stream* stream, const CopySide& destination, const CopySide& source,
                    const Extent& extent, Waits waits);

}  // namespace longwire::shim
