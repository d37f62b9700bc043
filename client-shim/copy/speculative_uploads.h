// Copies up from pinned memory to which their stream gets later. The bytes are sent at the call;
// until the stream gets there the memory is compared with what was sent, and what the program has
// changed is sent again: before every call that could let the stream go on, and every few
// milliseconds, because what runs there may end by itself. No round trip, however long the wire is.
// Where the memory is mirrored (mirrors.h) the copy reads the device's like of it, which is kept up
// to date in the same way: work that is handed over sees to it by itself.
// The reasons: docs/decisions/0042-pinned-memory-in-stream-order.md.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "client-shim/session/transfers.h"

namespace longwire::shim {

struct Stream;

// Whether a copy of so many bytes is made so; else the worker asks for them when the stream gets
// there. Off with LONGWIRE_DISABLE=speculative-uploads.
bool MaySpeculate(uint64_t bytes);

// Sends the bytes of a revisable copy, whose record is the one at `position` of the stream, and
// looks after them from now on. False when the session is over.
bool SendSpeculatively(Stream* stream, uint64_t position, uint64_t transfer,
                       const HostPlace& place);

// How many are looked after.
inline std::atomic<size_t> speculative_uploads{0};

// Before work of the stream by which the device writes so many bytes of the program's memory
// (kAnywhere: it is not known which) goes up: later work can let other streams go on behind it
// without a word from here, so their copies of this memory are asked for after all.
void PullInstead(const Stream* stream, uint64_t address, uint64_t bytes);

// The work at this position of the stream reads mirrored memory that the program may still write.
void NoteMirroredRead(Stream* stream, uint64_t position);

// How many such reads are unfinished.
inline std::atomic<size_t> mirrored_reads{0};

// The memory goes: nothing of it is looked at any more after this returns.
void ForgetUploadsOf(uint64_t address, uint64_t bytes);

}  // namespace longwire::shim
