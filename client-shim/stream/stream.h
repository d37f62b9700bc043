// Streams of the client, and their progress.
//
// A stream has two log positions. `last` is its newest call. All its calls up to `finished` are
// complete, and their bytes have arrived. The stream is idle if finished >= last. Position 0 means
// "none yet": the log's first record never belongs to a stream.
#pragma once

#include <cuda.h>

#include <array>
#include <atomic>
#include <cstdint>

#include "client-shim/support/handle_table.h"

namespace longwire::shim {

class ClientSession;
struct Context;
struct Capture;
struct ThreadState;

// As on the wire (lwStreamCreate).
enum class StreamKind : uint32_t { kBlocking = 0, kNonBlocking = 1, kLegacy = 2, kPerThread = 3 };

// Limits the unfinished calls of a stream to its share of bytes, by the positions at which each
// quarter of the share was used up. A thread that finds no room waits, as natively behind about
// 1,024 launches. Other threads go on: their calls may be those that the stream waits for.
struct StreamRoom {
  std::atomic<uint64_t> newest{0};  // position where the last quarter ended
  std::atomic<uint64_t> oldest{0};  // position that must be finished before more may be queued
  // The other members are guarded by the log's lock.
  std::array<uint64_t, 4> ends{};
  uint64_t quarters = 0;
  uint64_t bytes = 0;  // of the current quarter

  void Take(uint64_t position, uint64_t taken, uint64_t share);
};

struct Stream {
  uint64_t table_index = 0;
  CUstream handle = nullptr;
  uint64_t id = 0;                   // on the wire
  ClientSession* session = nullptr;  // of its context's server
  Context* context = nullptr;
  Context* owner = nullptr;     // its green context, if it has one, else the context
  uint32_t context_number = 0;  // the owner's
  StreamKind kind = StreamKind::kBlocking;
  unsigned flags = 0;
  int priority = 0;
  bool internal = false;  // one of ours: the program's work need not be ordered with it
  std::atomic<uint64_t> last{0};
  std::atomic<uint64_t> finished{0};
  std::atomic<uint64_t> wanted{0};       // progress was requested up to here
  std::atomic<uint64_t> awaited{0};      // a thread waits up to here, perhaps without a request
  std::atomic<uint64_t> sync_copy{0};    // newest copy that has returned to the program as done
  std::atomic<uint64_t> reused{0};       // newest work before a free whose memory is in use again
  std::atomic<uint64_t> early_seen{0};   // number of such copies and frees that it has waited for
  std::atomic<uint64_t> unheld{0};       // no unfinished work up to here can be held up
  std::atomic<uint64_t> gate_passed{0};  // version of its context's gate that it waits for
  std::atomic<uint64_t> green_gate_passed{0};  // the same for its green context
  std::atomic<uint64_t> mirrors_seen{0};       // number of pushes sent before its newest work
  std::atomic<uint64_t> mirrors_awaited{0};    // comparison that its newest work waits for
  StreamRoom room;
  std::atomic<bool> destroyed{false};
  std::atomic<uint32_t> references{0};  // the handle, the session's table, events
  std::atomic<Capture*> capture{nullptr};

  bool Idle() const { return finished.load() >= last.load(); }
  // True if its unfinished work is sure to end soon: only copies, fills, event records and value
  // writes. Kernels, graphs and waits may take as long as the program likes.
  bool Unheld() const { return Idle() || unheld.load() == last.load(); }
};

// Creates a stream in `owner`, a context or green context that the worker knows. FindStream finds
// its handle, unless it is a default stream. CUDA_ERROR_OUT_OF_MEMORY if there are too many.
CUresult NewStream(Context* owner, StreamKind kind, unsigned flags, int priority, Stream** created);

// The same for the program: CUDA_ERROR_INVALID_VALUE for unknown flags. The priority is clamped to
// the valid range.
CUresult NewProgramStream(Context* owner, unsigned flags, int priority, CUstream* handle);

// Destroys the stream. Its handle becomes invalid at once; its work and events still complete.
void DestroyStream(Stream* stream);

// The stream of a program's handle: 0 and 1 are the current context's legacy stream, 2 is the
// calling thread's own. CUDA_ERROR_INVALID_HANDLE, _INVALID_CONTEXT. The context's error is not
// checked.
CUresult FindStream(CUstream handle, Stream** stream);

// Counted references; the last one recycles the object.
void Retain(Stream* stream);
void Release(Stream* stream);

// Requests that the worker reports when the stream has reached the position.
void WantProgress(Stream* stream, uint64_t position);

// The same for a thread that waits for it or polls.
void AwaitProgress(Stream* stream, uint64_t position);

// Called after a call was queued: requests the progress that a thread waits for without a request.
void AskForWaiters(Stream* stream);

// The position whose completion makes room in the stream; 0 if it has room.
uint64_t AwaitedForRoom(Stream* stream);

// True if the next work of `stream` is ordered behind the queued work of `earlier`: they are the
// same stream, or the legacy stream's rule orders them. With nullptr: false for all.
bool IsOrdered(const Stream* stream, const Stream* earlier);

// True if the stream's next work starts soon: the unfinished work before it, in the stream and in
// those with which it is ordered, cannot be held up.
bool IsReachedAtOnce(const Stream* stream);

// True if all that its next work would wait for has finished, and the program may know it.
bool IsFinished(const Stream* stream);

// True if an action in the stream comes between work of other streams: it is the legacy stream, and
// others have unfinished work for which it waits, and the next work of all others waits for it.
bool IsBorder(const Stream* stream);

// True if a wait for `awaited` covers the work of `other`: they are the same stream, or the legacy
// stream orders them, for which no call is needed.
bool WaitCovers(const Stream* awaited, const Stream* other);

// Waits until everything handed to the stream up to `position` has finished. Returns the context's
// error, if any. For waits that the program does not see.
[[nodiscard]] CUresult AwaitStream(Stream* stream, uint64_t position);

// CUDA_SUCCESS, CUDA_ERROR_NOT_READY or the context's error. Requests the progress, so that a later
// poll succeeds.
CUresult PollStream(Stream* stream, uint64_t position);

// Destroys the per-thread streams of a thread that ends.
void DestroyThreadStreams(ThreadState& thread);

}  // namespace longwire::shim
