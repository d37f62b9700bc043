// Lanes: further pairs of byte logs beside a session's own, each on a connection of its own, for
// the bytes of large copies. A lane's log consists of records, too: a header and a piece of a
// transfer. The pieces of a transfer are spread over all lanes, in any order.
//
// On the worker's host, an uploaded piece may be in a slot instead, which is a part of the segment
// that program and worker share. The lane then carries only the slot's offset. The program does not
// touch the slot until the worker returns it (DownKind::kSlot).
#pragma once

#include <algorithm>
#include <cstdint>

#include "wire/limits.h"

namespace longwire::wire {

// A cache line, so that the bytes of the next piece, whose size is a multiple of it, are aligned.
struct alignas(64) LaneHeader {
  uint32_t bytes = 0;     // of header and data; the next record begins at the next multiple of 64
  uint32_t in_slot = 0;   // bytes of the piece, if it is in a slot and no data follow
  uint64_t transfer = 0;  // 0: no piece; the lane has been opened
  uint64_t offset = 0;    // of the piece in the packed transfer
  uint64_t slot = 0;      // where it lies in the segment
};
static_assert(sizeof(LaneHeader) == 64);

constexpr uint64_t AlignLane(uint64_t bytes) {
  return (bytes + sizeof(LaneHeader) - 1) / sizeof(LaneHeader) * sizeof(LaneHeader);
}

// The most bytes of data in one record.
inline constexpr size_t kMaxLaneChunk = kMaxRecordBytes - sizeof(LaneHeader);
inline constexpr size_t kMinLaneChunk = size_t{64} << 10;

// Each lane needs two copying threads at either end, so more lanes than half the processors compete
// with each other. More than 8 gained nothing on 16 processors.
constexpr uint32_t DefaultLanes(int processors) {
  return static_cast<uint32_t>(std::clamp(processors / 2, 1, 8));
}

// The size of a transfer's pieces: one for each lane, but not so small that a record costs more
// than its bytes.
constexpr uint64_t LanePiece(uint64_t bytes, uint32_t lanes, uint64_t chunk) {
  uint64_t share = AlignLane((bytes + lanes - 1) / std::max<uint32_t>(lanes, 1));
  return std::clamp<uint64_t>(share, kMinLaneChunk, std::max<uint64_t>(chunk, kMinLaneChunk));
}

}  // namespace longwire::wire
