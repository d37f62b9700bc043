// A program grows a buffer: it allocates a larger one, copies the whole of the old one to its start
// and frees the old one. The copy is held until it is known whether the free comes next; if it
// does, the old memory is mapped at the start of the new buffer, and no byte is copied. If anything
// else comes first that could tell the difference, the copy is made after all, at its place in its
// stream. The rules: docs/decisions/0015-remap-instead-of-copy.md.
#pragma once

#include <cstdint>

#include "client-shim/session/session.h"
#include "client-shim/stream/stream.h"
#include "longwire/calls.h"

namespace longwire::shim {

// True if the copy is held: it counts as queued. The caller has checked that it may be made. Off
// with LONGWIRE_DISABLE=remap.
bool HoldCopy(Stream* stream, const Where& where, const calls::lwCopyDevice& copy);

// The free of an allocation; in `stream`, or (nullptr) for all of them. True if a copy of it was
// held and its memory is part of the copy's target now: there is nothing left to free. Else a held
// copy from or to it is queued now. May wait as a free does; the caller holds no lock.
bool FreeAfterCopy(uint64_t address, const Stream* stream);

}  // namespace longwire::shim
