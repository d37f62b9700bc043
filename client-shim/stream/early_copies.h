// Early copies: copies to the device that return as soon as their bytes are taken. Natively they
// return when the bytes are on the device. So work of other streams, if it is not ordered behind
// the copy anyway, is held until the copy has finished. The same is done for work before a free
// whose memory is in use again, since natively the free waits for that work.
#pragma once

#include <cstdint>
#include <vector>

#include "client-shim/context/context.h"
#include "client-shim/stream/stream.h"

namespace longwire::shim {

// True if the stream's next copy may return early: the program cannot observe the difference, and
// holding other streams' work for the copy cannot delay the copy itself. Off with
// LONGWIRE_DISABLE=early-copies.
bool MayReturnEarly(Stream* stream);

// The copy at this position of the stream has returned early.
void NoteEarlyCopy(Stream* stream, uint64_t position);

// A deferred copy was queued at `position` (remap_copies.h). For the program it was queued earlier,
// behind the work `before`; once that has finished, the program may assume that the copy has, too.
void NoteLateCopy(Stream* stream, uint64_t position, const std::vector<StreamPoint>& before);

// For a free that natively waits: orders all later work behind the stream's work up to this
// position. False, and nothing is done, if some streams are not ordered behind it anyway, since
// that work may need theirs. Waits for no lock. Off with LONGWIRE_DISABLE=early-reuse.
bool PutAllBehind(Stream* stream, uint64_t position);

// Called before a stream gets work: queues the deferred copy, and waits for the copies and work
// above that the stream's work is not ordered behind; with nullptr for all. The caller holds no
// lock.
[[nodiscard]] CUresult AwaitEarlyCopies(Stream* stream);

}  // namespace longwire::shim
