// Streams of the client: where each one is in the log, and how far it has got.
//
// A stream's place in time is two log positions: `last`, of the newest call handed to it, and
// `finished`, below or at which everything of it has been done and its bytes have landed. A stream
// is idle when finished >= last. Position 0 stands for "nothing yet": the log's first record is
// never a stream's.
#pragma once

#include <cuda.h>

#include <array>
#include <atomic>
#include <cstdint>

#include "client-shim/support/handle_table.h"

namespace longwire::shim {

struct Context;
struct Capture;
struct ThreadState;

// As on the wire (lwStreamCreate).
enum class StreamKind : uint32_t { kBlocking = 0, kNonBlocking = 1, kLegacy = 2, kPerThread = 3 };

// How much of a stream's calls is unfinished, by the places where each quarter of its share was
// used up. A thread that finds no room waits, as it does natively behind about 1,024 launches, and
// holds nobody else up: the log stays open for those whose calls let the stream go on.
struct StreamRoom {
  std::atomic<uint64_t> newest{0};  // position where the last quarter ended
  std::atomic<uint64_t> oldest{0};  // what has to be finished before more may be queued
  // The rest under the log's lock.
  std::array<uint64_t, 4> ends{};
  uint64_t quarters = 0;
  uint64_t bytes = 0;  // of the quarter that fills now

  void Take(uint64_t position, uint64_t taken, uint64_t share);
};

struct Stream {
  uint64_t table_index = 0;
  CUstream handle = nullptr;
  uint64_t id = 0;  // on the wire
  Context* context = nullptr;
  Context* owner = nullptr;     // its green context, if it has one, else the context
  uint32_t context_number = 0;  // the owner's
  StreamKind kind = StreamKind::kBlocking;
  unsigned flags = 0;
  int priority = 0;
  bool internal = false;  // of ours: the program's work need not be ordered with it
  std::atomic<uint64_t> last{0};
  std::atomic<uint64_t> finished{0};
  std::atomic<uint64_t> wanted{0};       // up to where progress was asked for
  std::atomic<uint64_t> awaited{0};      // up to where somebody waits, perhaps without asking
  std::atomic<uint64_t> sync_copy{0};    // newest copy that the program was told is done
  std::atomic<uint64_t> reused{0};       // newest work before a free whose memory is in use again
  std::atomic<uint64_t> early_seen{0};   // how many of these two, of others, it has waited for
  std::atomic<uint64_t> unheld{0};       // up to where nothing unfinished of it can be held up
  std::atomic<uint64_t> gate_passed{0};  // up to which gate of its context it waits
  std::atomic<uint64_t> green_gate_passed{0};  // the same of its green context
  std::atomic<uint64_t> mirrors_seen{0};       // what was sent of mirrors before its newest work
  std::atomic<uint64_t> mirrors_awaited{0};    // which comparison of them that waits for
  StreamRoom room;
  std::atomic<bool> destroyed{false};
  std::atomic<uint32_t> references{0};  // the handle, the session's table, events
  std::atomic<Capture*> capture{nullptr};

  bool Idle() const { return finished.load() >= last.load(); }
  // Whether what is unfinished of it ends by itself, and soon: copies, fills, records of events,
  // values that are written, with nothing else before them. Kernels, graphs and all that waits may
  // be held up as long as the program likes.
  bool Unheld() const { return Idle() || unheld.load() == last.load(); }
};

// Creates a stream in `owner`, a context or green context, known to the worker; its handle is
// findable unless it is one of the default streams. CUDA_ERROR_OUT_OF_MEMORY when there are too
// many.
CUresult NewStream(Context* owner, StreamKind kind, unsigned flags, int priority, Stream** created);

// The same for the program: CUDA_ERROR_INVALID_VALUE for flags that are none. A priority outside
// the range counts as the nearest one inside.
CUresult NewProgramStream(Context* owner, unsigned flags, int priority, CUstream* handle);

// Destroys it: the handle is gone at once, its work goes on, its events still complete.
void DestroyStream(Stream* stream);

// The stream that a program's handle means: 0 and 1 the current context's legacy stream, 2 the
// calling thread's own. CUDA_ERROR_INVALID_HANDLE, _INVALID_CONTEXT. It does not look at the
// context's errors.
CUresult FindStream(CUstream handle, Stream** stream);

// Counted references; the last one recycles the object.
void Retain(Stream* stream);
void Release(Stream* stream);

// Has the worker say when the stream got there; nobody need wait for it.
void WantProgress(Stream* stream, uint64_t position);

// The same for somebody who waits, or asks again and again.
void AwaitProgress(Stream* stream, uint64_t position);

// After a call was queued: asks for the progress that somebody waits for without having asked.
void AskForWaiters(Stream* stream);

// The place whose end makes room in the stream; 0: it has room.
uint64_t AwaitedForRoom(Stream* stream);

// Whether the stream's next work waits by itself for what the earlier one has been given: if they
// are the same, or by the rule of the legacy stream. `stream` nullptr: no stream's work.
bool IsOrdered(const Stream* stream, const Stream* earlier);

// Whether the stream's next work is reached at once: nothing that can be held up is unfinished
// before it, in the stream or in those with which it is ordered.
bool IsReachedAtOnce(const Stream* stream);

// Whether the program's wait for one stream is a wait for the other's work, too: for the same, or
// by the legacy stream, which needs no call of its own for that.
bool WaitCovers(const Stream* awaited, const Stream* other);

// Waits until everything handed to the stream up to `position` has finished. Returns the context's
// error, if any. For waits that the program does not see.
[[nodiscard]] CUresult AwaitStream(Stream* stream, uint64_t position);

// CUDA_SUCCESS, CUDA_ERROR_NOT_READY or the context's error; sees to it that the answer changes.
CUresult PollStream(Stream* stream, uint64_t position);

// The own streams of a thread that ends.
void DestroyThreadStreams(ThreadState& thread);

}  // namespace longwire::shim
