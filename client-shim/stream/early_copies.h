// Copies to the device of which the program is told that they are done as soon as their bytes are
// taken. Natively it is told when they are on the device; so work of streams that would not wait
// for such a copy by themselves is held until it has finished. The same goes for
// work before a free, if that memory is in use again: natively the free had waited for it.
#pragma once

#include <cstdint>
#include <vector>

#include "client-shim/context/context.h"
#include "client-shim/stream/stream.h"

namespace longwire::shim {

// Whether the program may be told so of the next copy of the stream: nobody can tell, and holding
// other streams' work for it cannot hold up the copy itself. Off with
// LONGWIRE_DISABLE=early-copies.
bool MayReturnEarly(Stream* stream);

// It was told so of the copy at this position of the stream.
void NoteEarlyCopy(Stream* stream, uint64_t position);

// A copy was queued here that the program thinks was queued earlier (remap_copies.h), behind this
// work: once that is finished, the program may think that the copy is.
void NoteLateCopy(Stream* stream, uint64_t position, const std::vector<StreamPoint>& before);

// Has all work that follows wait for the stream's work up to this position, before a free that
// natively waits for it. False, and nothing is done, if there are streams that would not wait by
// themselves: that work may need theirs. Waits for no lock. Off with LONGWIRE_DISABLE=early-reuse.
bool PutAllBehind(Stream* stream, uint64_t position);

// Before a stream gets work: queues the copy that is held, and waits for what of the above this
// work would not wait for. nullptr: for all. The caller holds no lock.
[[nodiscard]] CUresult AwaitEarlyCopies(Stream* stream);

}  // namespace longwire::shim
