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

struct Stream;

// See limits.h.
struct KeptLimits {
  uint32_t number = 0;   // the context's, of which they are
  uint64_t changes = 0;  // counts what made them forget
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
  bool primary = false;
  // Of a green context: its device's primary context, which has its memory, modules, events and
  // errors. Else itself.
  Context* home = nullptr;
  CUgreenCtx green = nullptr;    // its other handle, if it is green
  uint32_t multiprocessors = 0;  // of a green one
  std::atomic<unsigned> flags{0};
  // Under which the worker knows it; 0: a primary context that is not active.
  std::atomic<uint32_t> number{0};
  std::atomic<bool> was_reset{false};  // a primary context, and not retained since
  // The first code that poisoned it: every later call returns it.
  std::atomic<int> sticky{0};
  std::atomic<CUfunc_cache> cache_config{CU_FUNC_CACHE_PREFER_NONE};
  // A late failure that does not poison: the next call that may return it does, once.
  std::atomic<int> once{0};
  // Captures going on in blocking streams: the legacy stream must not be used meanwhile.
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
  KeptLimits limits LONGWIRE_GUARDED_BY(mutex);
  // All that may still have unfinished work, those of its green contexts too; a green one has none.
  std::vector<Stream*> streams LONGWIRE_GUARDED_BY(mutex);
};

// The current context of the calling thread, usable: activates a primary context that is current
// but not yet retained. Of a green context its home. CUDA_ERROR_INVALID_CONTEXT (none),
// _CONTEXT_IS_DESTROYED.
CUresult RequireContext(Context** context);
// The same, but the green context itself: whose streams work goes to.
CUresult RequireOwner(Context** owner);

// The same, and the context's own errors: what calls that hand over work return.
CUresult RequireHealthyContext(Context** context);

// A poisoned context's code, or a late failure that has not been returned yet (and now is).
CUresult TakeError(Context* context);

// The context of a handle, green or not, nullptr if it is none. A null handle is the current
// context's.
Context* FindContext(CUcontext handle);

// By the number on the wire, for errors that come back: of a green context its home. nullptr if it
// is gone.
Context* ContextByNumber(uint32_t number);

// Gives a primary context a number and makes it in the worker, unless it has one. Waits for another
// thread that does so.
CUresult ActivatePrimary(Context* context);

// What other parts do for a context's sake (context_parts.cc).
struct ContextParts {
  CUresult (*made)(Context*) = nullptr;      // made in the worker, or another one has ended
  void (*ends)(Context*) = nullptr;          // about to end, and still usable
  void (*closed)(Context*) = nullptr;        // no more usable, and not ended in the worker yet
  void (*ended)(uint32_t number) = nullptr;  // ended in the worker
};
// At start.
void SetContextParts(const ContextParts& parts);

// At start: the inactive primary context of the next device.
void CreatePrimaryContext(int device);

// A context of its own, made in the worker.
CUresult NewContext(int device, unsigned flags, Context** created);

// Ends it in the worker and frees all that belongs to it; calls the death hooks. The handle of a
// primary context stays, and it can be activated again.
CUresult EndContext(Context* context);

// The primary context of a device, active or not; nullptr if there is no such device.
Context* PrimaryContext(int device);

// The context's or green context's legacy default stream, made at first use.
CUresult LegacyStream(Context* context, Stream** stream);

// The calling thread's own default stream in this context, made at first use.
CUresult OwnStream(Context* context, Stream** stream);

// Whether the stream is one of the context's, or of its green contexts'.
bool Belongs(const Stream* stream, const Context* context);

// A snapshot of a context's unfinished streams, for frees.
struct StreamPoint {
  Stream* stream;
  uint64_t position;
};
// The streams with unfinished work and up to where; each stream is retained for the caller.
std::vector<StreamPoint> UnfinishedWork(Context* context);
// What the stream's next work comes behind, of its own and of streams with which it is ordered; the
// same way. For what takes the place of work in the stream without being given to it.
std::vector<StreamPoint> UnfinishedBefore(const Stream* stream);
// Of all contexts: another device's work may use the memory, by peer copies or peer access.
std::vector<StreamPoint> UnfinishedWorkOfAll();
// Whether no other context is active, but for its own green ones.
bool IsOnlyContext(const Context* context);
// Waits for all of it, as AwaitStream does, and releases the streams. The session's end, if that
// ended the wait; what contexts have failed with their own calls say.
[[nodiscard]] CUresult AwaitWork(std::span<const StreamPoint> points);

// A new number on the wire, under which errors find the context; until it is forgotten.
uint32_t NewContextNumber(Context* context);
void ForgetContextNumber(uint32_t number);
// Tells those who asked (current_context.h) that the context is no more.
void CallDeathHooks(CUcontext handle);

using ContextTable = HandleTable<Context, HandleKind::kContext>;
ContextTable& Contexts();

}  // namespace longwire::shim
