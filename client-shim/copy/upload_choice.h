// How an upload's bytes get to the device, and when the call returns: functions of what is known
// about the copy, without state. copies.cc collects the facts and acts on the choice.
#pragma once

#include <cstdint>

namespace longwire::shim {

// What is known about a copy from the program's memory. Some facts cost a lock or a look at other
// streams: the functions below say where they matter, and elsewhere they stay false.
struct UploadFacts {
  uint64_t bytes = 0;
  bool contiguous = true;  // the source is one row
  bool captured = false;   // the stream captures
  bool waits = false;      // the call returns when the copy has finished, as cuMemcpyHtoD does
  bool reads_now = false;  // the source is read before the call returns, even if it is pinned
  bool pinned = false;     // all of the source
  // If ReadsInOrder: unfinished work may still write the source.
  bool write_pending = false;
  // If ReadsInOrder and no write is pending: the stream may reach the copy only later, so that the
  // program may change the source before.
  bool reached_later = false;
  // Unless MustReadNow: the worker's device can read the source itself, in the shared segment.
  bool shared = false;
  bool fits_window = true;     // the bytes can be sent without waiting for the worker
  bool fits_lanes = false;     // lanes carry copies of this size
  bool may_speculate = false;  // if AsksToSpeculate: the memory may be watched until it is read
};

// The source counts as it is when the stream reaches the copy.
bool ReadsInOrder(const UploadFacts& facts);
// Waiting for the device, as a shared copy does, would be slower or too late.
bool MustReadNow(const UploadFacts& facts);
// The bytes are taken when the stream reaches the copy, and might be sent ahead.
bool AsksToSpeculate(const UploadFacts& facts);

enum class UploadWay {
  kShared,       // the device reads the shared segment
  kPulled,       // the worker asks for the bytes when the stream reaches the copy
  kSpeculative,  // sent now, and what changes before the stream gets there is sent again
  kInline,       // in the copy's record
  kPacked,       // the same, with the rows put together first
  kInLog,        // behind the copy's record
  kByLanes,      // through the lanes
};
UploadWay ChooseUpload(const UploadFacts& facts);

enum class UploadReturn {
  kAtOnce,
  kEarly,  // the bytes are taken, and nobody can observe that the copy is unfinished
  kWhenFinished,
};
// Whether an early return matters: `unobserved` is false elsewhere.
bool AsksToReturnEarly(const UploadFacts& facts, UploadWay way);
UploadReturn ChooseReturn(const UploadFacts& facts, UploadWay way, bool unobserved);

// Of a copy that is large enough for the server's cache of uploads.
struct CacheFacts {
  bool linear = false;    // from one row to device memory
  bool waits = false;     // as above
  bool pinned = false;    // as above
  bool captured = false;  // as above
  bool mirrored = false;  // the destination
  bool write_pending = false;
};
// Its bytes are final, and it may have finished when the call returns.
bool MayBeCached(const CacheFacts& facts);

}  // namespace longwire::shim
