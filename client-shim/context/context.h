// Contexts of the client. A handle stays the same for a primary context's whole life; each time it
// is activated the context has a new number, under which the worker knows it.
#pragma once

#include <cuda.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "client-shim/support/handle_table.h"

namespace longwire::shim {

class ClientSession;
struct Stream;
struct Where;

// See limits.h.
struct CachedLimits {
  uint32_t number = 0;   // of the context whose limits they are
  uint64_t changes = 0;  // how often the cache was emptied
  std::map<CUlimit, size_t> values;
};

// The event that all later work of a context waits for, and where it was recorded; see
// context_events.h. It is recorded once.
struct ContextGate {
  CUevent event = nullptr;
  uint64_t id = 0, version = 0;
  Stream* stream = nullptr;  // retained by the event
  uint64_t position = 0;
};

struct Context {
  uint64_t table_index = 0;
  CUcontext handle = nullptr;
  int device = 0;
  ClientSession* session = nullptr;  // of its device's server
  bool primary = false;
  // Of a green context: its device's primary context, which owns its memory, modules, events and
  // errors. Of any other: itself.
  Context* home = nullptr;
  CUgreenCtx green = nullptr;    // its other handle, if it is green
  uint32_t multiprocessors = 0;  // of a green one
  std::atomic<unsigned> flags{0};
  // The number by which the worker knows it; 0: a primary context that is not active.
  std::atomic<uint32_t> number{0};
  std::atomic<bool> was_reset{false};  // a primary context, and not retained since
  // The error that made it unusable: every later call returns it.
  std::atomic<int> sticky{0};
  std::atomic<CUfunc_cache> cache_config{CU_FUNC_CACHE_PREFER_NONE};
  // A late error that leaves it usable: the next call that may return it does, once.
  std::atomic<int> once{0};
  // Captures in blocking streams: the legacy stream must not be used while there is one.
  std::atomic<uint32_t> blocking_captures{0};
  std::atomic<uint32_t> captures{0};
  std::atomic<Stream*> legacy{nullptr};

  std::atomic<uint64_t> gate_version{0};  // counts the gates
  base::Mutex gate_mutex{base::ranks::kContextGate};
  ContextGate gate LONGWIRE_GUARDED_BY(gate_mutex);  // the newest one, behind all before it

  base::Mutex mutex{base::ranks::kContext};
  // A thread waits for the worker to make it.
  bool activating LONGWIRE_GUARDED_BY(mutex) = false;
  base::CondVar activated;                          // or the attempt has failed
  uint32_t retains LONGWIRE_GUARDED_BY(mutex) = 0;  // of a primary context
  // Of another context: its maker, and each cuCtxAttach.
  uint32_t attachments LONGWIRE_GUARDED_BY(mutex) = 1;
  CachedLimits limits LONGWIRE_GUARDED_BY(mutex);
  // Streams that may have unfinished work, including those of its green contexts; empty in a green
  // context.
  std::vector<Stream*> streams LONGWIRE_GUARDED_BY(mutex);
};

// The calling thread's current context; if that is green, its home. Activates a primary context
// that is current but not yet retained. CUDA_ERROR_INVALID_CONTEXT if there is none,
// CUDA_ERROR_CONTEXT_IS_DESTROYED.
CUresult RequireContext(Context** context);
// The same, but a green context is returned itself: the one whose streams get the work.
CUresult RequireOwner(Context** owner);

// As RequireContext, and returns the context's own error: for calls that queue work.
CUresult RequireHealthyContext(Context** context);

// Where calls of the context go that belong to no stream; the second by its number, or a green
// one's (0: of no context, to the first server).
Where WhereOf(const Context* context);
Where WhereOfNumber(uint32_t number);

// The context's sticky error, or a late error that no call has returned yet (and this one does).
CUresult TakeError(Context* context);

// The context of a handle, green or not; nullptr if the handle is invalid. A null handle stands for
// the current context.
Context* FindContext(CUcontext handle);

// All that are active, without green contexts, which are parts of these.
std::vector<Context*> LiveContexts();

// By the number on the wire, for errors that come back. Of a green context's number: its home.
// nullptr if the context has ended.
Context* ContextByNumber(uint32_t number);

// Gives a primary context a number and creates it in the worker, unless it is active. If another
// thread is doing so, waits for that.
CUresult ActivatePrimary(Context* context);

// What other parts of the client do when a context is created or ends (context_parts.cc).
struct ContextParts {
  CUresult (*made)(Context*) = nullptr;  // created in the worker, or another one has ended
  void (*ends)(Context*) = nullptr;      // about to end, and still usable
  // No longer usable, but not yet ended in the worker; also a green context. The thread holds no
  // lock of the shim.
  void (*closed)(Context*) = nullptr;
  void (*ended)(uint32_t number) = nullptr;  // ended in the worker
};
// At start.
void SetContextParts(const ContextParts& parts);

// At start: the inactive primary context of the next device.
void CreatePrimaryContext(int device);

// A context that is not primary, created in the worker.
CUresult NewContext(int device, unsigned flags, Context** created);

// Ends it in the worker and frees all that belongs to it. A primary context keeps its handle and
// can be activated again.
CUresult EndContext(Context* context);

// The primary context of a device, active or not; nullptr if there is no such device.
Context* PrimaryContext(int device);

// The context's or green context's legacy default stream, made at first use.
CUresult LegacyStream(Context* context, Stream** stream);

// The calling thread's own default stream in this context, made at first use.
CUresult OwnStream(Context* context, Stream** stream);

// Whether the stream is one of the context's, or of its green contexts'.
bool Belongs(const Stream* stream, const Context* context);

// A point in a stream's work: the call at this position of the log.
struct StreamPoint {
  Stream* stream;
  uint64_t position;
};
// The context's streams that have unfinished work, each with its newest call. Each stream is
// retained for the caller, here and in the next two.
std::vector<StreamPoint> UnfinishedWork(Context* context);
// The unfinished work after which the stream's next work runs: its own, and that of streams with
// which it is ordered. For what the client does itself instead of queueing it in the stream.
std::vector<StreamPoint> UnfinishedBefore(const Stream* stream);
// The same of all contexts: another device's work may use the memory, by peer copies or peer
// access.
std::vector<StreamPoint> UnfinishedWorkOfAll();
// Whether no other context is active, but for its own green ones.
bool IsOnlyContext(const Context* context);
// Waits until all points have finished, as AwaitStream does, and releases the streams. Returns an
// error only if the session ended; contexts' errors are returned by calls in these contexts.
[[nodiscard]] CUresult AwaitWork(std::span<const StreamPoint> points);

// A new number on the wire, by which errors find the context until it is forgotten.
uint32_t NewContextNumber(Context* context);
void ForgetContextNumber(uint32_t number);
// ContextParts::closed.
void CloseContext(Context* context);

using ContextTable = HandleTable<Context, HandleKind::kContext>;
ContextTable& Contexts();

}  // namespace longwire::shim
