// A program grows a buffer: it allocates a larger one, copies the whole of the old one to its start
// and frees the old one. Such a copy is deferred until the next call is known. If that is the free,
// the old memory is mapped at the start of the new buffer and no byte is copied. Before any other
// call that could observe the difference the copy is queued after all, at its position in its
// stream. The rules: docs/decisions/0015-remap-instead-of-copy.md.
#pragma once

#include <cstdint>

#include "client-shim/session/session.h"
#include "client-shim/stream/stream.h"
#include "longwire/calls.h"

namespace longwire::shim {

// True if the copy is deferred: for the program it counts as queued. The caller has checked that
// the copy is legal. Never with LONGWIRE_DISABLE=remap.
bool DeferCopy(Stream* stream, const Where& where, const calls::lwCopyDevice& copy);

// To be called at the free of an allocation, by `stream` or (nullptr) for all streams. True if its
// memory was moved into the target of a deferred copy: there is nothing left to free. Otherwise a
// deferred copy from or to it is queued now. May wait, as a free does; the caller holds no lock.
bool FreeAfterCopy(uint64_t address, const Stream* stream);

}  // namespace longwire::shim
