// The records of a session's two logs. Up: calls, from client to worker. Down: replies and
// messages, from worker to client. A record starts at a multiple of 8 bytes of its log. Where it
// starts is its position, by which both sides identify it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "wire/limits.h"
#include "wire/result.h"

namespace longwire::wire {

inline constexpr size_t kRecordAlignment = 8;
constexpr size_t AlignRecord(size_t bytes) {
  return (bytes + kRecordAlignment - 1) / kRecordAlignment * kRecordAlignment;
}

// Client to worker: the header of one call; its encoded arguments follow.
struct RecordHeader {
  uint32_t bytes;    // of header and arguments, without the padding to the next record
  uint16_t call;     // a generated CallId
  uint16_t flags;    // RecordFlags
  uint32_t thread;   // client thread, from 1
  uint32_t context;  // client-minted context number, 0 = none
  uint64_t stream;   // stream id, 0 = not ordered by a stream
};
static_assert(sizeof(RecordHeader) == 24);

enum RecordFlags : uint16_t {
  kCapturing = 1,   // the stream is capturing: no markers of ours may enter it
  kWantsReply = 2,  // answer with kReply even though the call's kind does not ask for one
  kUnawaited = 4,  // of a change of an executable graph: the program goes on as if it had succeeded
};

enum class DownKind : uint16_t {
  kReply = 1,         // answer to the call at `position`: code = CUresult, payload = its Reply
  kProgress = 2,      // payload u64 stream: all of it up to and with `position` has finished
  kData = 3,          // payload u64 transfer, u64 offset, bytes: device-to-host bytes, packed
  kPull = 4,          // payload u64 transfer: send this transfer's bytes now
  kHostFunction = 5,  // payload u64 ticket: run this host function, then answer Done
  kError = 6,         // the call at `position` failed: code, u32 context, sentence
  kText = 7,          // bytes for the client's standard output (device printf), or error
  kCredit = 8,        // payload u64: bytes of upload that have been taken
  kRelease = 9,       // payload u64 transfer, u64 ticket: no graph uses these any more; 0: none
  kMirror = 10,       // payload u64 mirror, delta: the device's changes; u64 ticket without a delta
  kLanding = 11,      // payload u64 transfer, u64 bytes: this many of its bytes come through lanes;
                      // later records take effect once these have arrived
  kReclaim = 12,      // ReclaimRequest: give free memory back, then answer lwReclaimed
  kSlot = 13,  // payload u64 offset in the segment: the slot there (wire/lane.h) is free again
};

// What the server knows of an image by its digest.
enum class ImageKnowledge : uint32_t {
  kUnsaid = 0,   // the call failed before the look-up, or had no digest
  kNotKept = 1,  // the server keeps no images
  kNew = 2,
  kKnown = 3,
};

// Payload of kReclaim.
struct ReclaimRequest {
  uint64_t request;
  uint64_t bytes;   // wanted; 0: only report how much is free
  uint64_t keep;    // bytes that may stay; if bytes is 0, not 0 asks to report the next change, too
  int32_t device;   // as the session counts
  uint32_t unused;  // not 0: only memory that was free all the time since the last such request
};
static_assert(sizeof(ReclaimRequest) == 32);

// In the answer's number of the request: the next change will be reported, once, under the number
// without this bit. Older clients do not set it.
inline constexpr uint64_t kWatchesFree = uint64_t{1} << 63;

enum DownFlags : uint16_t {
  kSticky = 1,         // kError: the code stays with the context
  kSessionOver = 2,    // kError: nothing of this session works any more
  kStandardError = 4,  // kText: the bytes are for standard error (failed asserts)
};

// Worker to client.
struct DownHeader {
  uint32_t bytes;  // of header and payload, without the padding to the next record
  uint16_t kind;   // DownKind
  uint16_t flags;  // DownFlags
  int32_t code;    // CUresult
  uint32_t reserved;
  uint64_t position;  // in the up log
};
static_assert(sizeof(DownHeader) == 24);

// Reads the header of the record at the start of `log`. The writer may be hostile and share this
// memory, so the header is copied once and then checked. kOk with *bytes = 0 means that the record
// is not complete yet. The record takes *bytes of the log, rounded up to the alignment.
template <class Header>
WireResult PeekRecord(std::span<const std::byte> log, Header* header, size_t* bytes,
                      size_t alignment = kRecordAlignment) {
  *bytes = 0;
  if (log.size() < sizeof(Header)) return WireResult::kOk;
  std::memcpy(header, log.data(), sizeof(Header));
  if (header->bytes < sizeof(Header) || header->bytes > kMaxRecordBytes) return WireResult::kFatal;
  size_t whole = (header->bytes + alignment - 1) / alignment * alignment;
  if (log.size() < whole) return WireResult::kOk;
  *bytes = header->bytes;
  return WireResult::kOk;
}

}  // namespace longwire::wire
