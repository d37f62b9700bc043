// Copies between two places of the program's own memory, which the driver makes, too.
#pragma once

#include "client-shim/copy/copies.h"

namespace longwire::shim {

// Behind the work that the stream's next work would be behind. In a capture that does not wait it
// becomes a node of the graph.
CUresult CopyInHost(Stream* stream, const CopySide& destination, const CopySide& source,
                    const Extent& extent, Waits waits);

}  // namespace longwire::shim
