// Every limit of the wire, with its reason. Each size that comes from the wire is checked against
// one of these limits before it is used.
#pragma once

#include <cstddef>
#include <cstdint>

namespace longwire::wire {

inline constexpr uint16_t kDefaultPort = 7411;

// Bytes of one direction of one session: at 30 ms round-trip time and 8 MiB unacknowledged a
// session still moves 260 MB/s; both rings of both hops stay within 64 MiB.
inline constexpr size_t kRingBytes = size_t{8} << 20;

// A record is copied out of the ring once, so it is bounded; larger data is cut into records.
inline constexpr size_t kMaxRecordBytes = size_t{1} << 20;

// Small copies ride in their own record; larger ones follow in pieces.
inline constexpr size_t kInlineCopyBytes = size_t{64} << 10;
inline constexpr size_t kCopyPieceBytes = size_t{256} << 10;

// Lanes (wire/lane.h) of one session, and bytes of one direction of one lane: the rings of eight
// lanes together hold as much as the upload window allows.
inline constexpr uint32_t kMaxLanes = 16;
inline constexpr size_t kLaneRingBytes = size_t{4} << 20;
// Copies of at least kLaneCopyBytes take the lanes, in pieces of at most kLaneChunkBytes, unless
// the client's request sets other sizes.
inline constexpr size_t kLaneCopyBytes = size_t{1} << 20;
inline constexpr size_t kLaneChunkBytes = size_t{512} << 10;
// Of copies up to kBesideLanesBytes the log carries as much as keeps it busy while the lanes'
// threads wake up, so that no call behind it waits for more than this.
inline constexpr size_t kBesideLanesBytes = size_t{16} << 20;
inline constexpr size_t kLogAheadBytes = size_t{2} << 20;

// A slot (wire/lane.h) holds one such piece. All slots of a session together hold as much as the
// upload window allows: more bytes cannot be in flight.
inline constexpr size_t kSlotBytes = kLaneChunkBytes;
inline constexpr size_t kSlotsBytes = size_t{32} << 20;

// One delta of a mirrored range (wire/page_delta.h): about as much as a piece of a copy.
inline constexpr size_t kDeltaBytes = size_t{256} << 10;

// Mirrors that are looked at while work runs, and their bytes together: each look copies these from
// the device twice.
inline constexpr size_t kLookMirrors = 64;
inline constexpr size_t kLookBytes = size_t{4} << 20;

// Upload bytes that a client may have in flight before the worker has taken them. The reply to the
// opening may set a smaller window.
inline constexpr size_t kUploadWindowBytes = size_t{32} << 20;

// A relay sends at most this much as one message. This bounds its memory, and how long other
// sessions wait behind it.
inline constexpr size_t kMaxBatchBytes = size_t{1} << 20;

// Issued but unfinished calls of one stream: the driver itself blocks at about 1,024.
inline constexpr uint32_t kMaxUnfinishedPerStream = 512;

inline constexpr uint16_t kCallNumbers = 4096;  // of CallId: more than there will be
inline constexpr size_t kMaxDevices = 64;
// Of one program. Each numbers its objects in a space of its own (kHandleSpace in wire/open.h).
inline constexpr size_t kMaxServers = 8;
inline constexpr size_t kMaxAttributes = 4096;    // attributes of one device or function
inline constexpr size_t kMaxFunctions = 1 << 17;  // kernels of one module
inline constexpr size_t kMaxStringBytes = size_t{1} << 20;
inline constexpr size_t kMaxImageBytes = size_t{2} << 30;  // one module image
inline constexpr size_t kMaxOpenBytes = 192 << 10;         // OpenRequest / OpenReply on a socket
inline constexpr size_t kMaxEnvironment = 64;              // variables in OpenRequest
inline constexpr size_t kMaxWindows = 16;                  // candidate windows in OpenRequest

}  // namespace longwire::wire
