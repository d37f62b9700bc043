// Copies of which a side lies on another server than the stream. They go through this process: when
// the stream gets to the copy, the bytes are read from the one server and written to the other, and
// the stream goes on when they are there.
#pragma once

#include "client-shim/copy/copies.h"

namespace longwire::shim {

// Whether a resolved side is memory of another server than the stream's.
bool IsAcross(const Stream* stream, const CopySide& destination, const CopySide& source);

// Makes such a copy, of resolved sides.
CUresult CopyAcross(Stream* stream, const CopySide& destination, const CopySide& source,
                    const Extent& extent, Waits waits);

}  // namespace longwire::shim
