// How the bytes of a copy are cut in the session's log. Program, link, daemon and worker each copy
// them once more; with small pieces they do it at the same time, each a piece behind the one before
// (docs/decisions/0088). Off with LONGWIRE_DISABLE=piece-by-piece, for each process by its own
// environment.
#pragma once

#include <cstddef>
#include <cstdint>

namespace longwire::wire {

bool MovesPieceByPiece();

// The bytes of a piece of a copy of `total` bytes: a few for each copy, none so small that its
// record costs as much as its bytes. At most kCopyPieceBytes.
size_t LogPiece(uint64_t total);

// Records from here on carry bytes of copies: whoever has one does not wait for the next. A relay
// publishes this much of a message before it takes the rest.
inline constexpr size_t kBulkRecordBytes = size_t{16} << 10;
inline constexpr size_t kPublishedBytes = size_t{32} << 10;

// Of a transfer that may use lanes, the bytes that the log carries beside them while it still has
// to move `backlog` bytes; not so few that they are not worth it. Off with
// LONGWIRE_DISABLE=log-beside-lanes, for uploads in the program's environment, for downloads in the
// worker's.
uint64_t LogShare(uint64_t bytes, uint64_t backlog);

}  // namespace longwire::wire
