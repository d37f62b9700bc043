// Uploads from pinned memory that their stream reaches later. The bytes are sent at the call. Until
// the stream gets there the memory is compared with what was sent, and changed bytes are sent
// again: before every call that could let the stream proceed, and every few milliseconds, because
// the stream may also proceed by itself. This takes no round trip, whatever the latency of the
// network. If the memory is mirrored (mirrors.h) the copy reads its counterpart on the device,
// which is kept up to date in the same way.
//
// The reasons: docs/decisions/0042-pinned-memory-in-stream-order.md.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "client-shim/session/transfers.h"

namespace longwire::shim {

class ClientSession;
struct Stream;

// Whether a copy of `bytes` bytes is made this way; otherwise the worker pulls them when the stream
// gets there. Never with LONGWIRE_DISABLE=speculative-uploads.
bool MaySpeculate(ClientSession& session, uint64_t bytes);

// Sends the bytes of a revisable copy, whose record is at `position` of the stream, and watches the
// memory from now on. False when the session is over.
bool SendSpeculatively(Stream* stream, uint64_t position, uint64_t transfer,
                       const HostPlace& place);

// The number of copies whose memory is watched.
inline std::atomic<size_t> speculative_uploads{0};

// To be called before work of the stream is queued by which the device writes `bytes` bytes of the
// program's memory (kAnywhere: an unknown range). That work can let other streams proceed without
// this process noticing, so the worker pulls their copies of this memory after all.
void PullInstead(const Stream* stream, uint64_t address, uint64_t bytes);

// The work at this position of the stream reads mirrored memory that the program may still write.
void NoteMirroredRead(Stream* stream, uint64_t position);

// The number of such reads that are unfinished.
inline std::atomic<size_t> mirrored_reads{0};

// The memory goes away: it is not read any more once this returns.
void ForgetUploadsOf(uint64_t address, uint64_t bytes);

}  // namespace longwire::shim
