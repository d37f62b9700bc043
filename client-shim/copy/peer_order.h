// cuMemcpyPeer and cuMemcpy3DPeer are borders between all work of the devices concerned: the copy
// is behind what they were given before it, and before what they are given next, in whatever
// stream. So says the driver's manual (the forms with Async are ordered in their stream alone), and
// programs may rely on it; driver 580 on two H200 lets later work of non-blocking streams overtake.
// A device orders only its own streams, so the program waits.
#pragma once

#include "client-shim/copy/copy_sides.h"

namespace longwire::shim {

struct Stream;

// Whether a side is on another device than the stream.
bool HasOtherDevice(const Stream* stream, const CopySide& destination, const CopySide& source);
// Waits for all work of the stream's device and of both sides'.
CUresult AwaitDevices(const Stream* stream, const CopySide& destination, const CopySide& source);

}  // namespace longwire::shim
