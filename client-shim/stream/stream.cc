#include "client-shim/stream/stream.h"

#include <algorithm>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "base/try.h"
#include "client-shim/context/context.h"
#include "client-shim/context/current_context.h"
#include "client-shim/session/process_state.h"
#include "client-shim/session/session.h"
#include "client-shim/support/never_destroyed.h"
#include "client-shim/support/threads.h"
#include "longwire/calls.h"
#include "wire/switches.h"

namespace longwire::shim {
namespace {

using StreamTable = HandleTable<Stream, HandleKind::kStream>;

StreamTable& Streams() {
  static NeverDestroyed<StreamTable> table;
  return *table;
}

// Asks the worker to say when the stream got there, once per place.
void Want(Stream* stream, uint64_t position) {
  uint64_t wanted = stream->wanted.load(std::memory_order_relaxed);
  while (wanted < position) {
    if (!stream->wanted.compare_exchange_weak(wanted, position)) continue;
    calls::lwStreamWanted want;
    want.stream = stream->id;
    want.position = position;
    stream->session->Submit({stream->context_number, nullptr, 0}, want);
    return;
  }
}

CUresult ContextError(const Stream* stream) {
  const CUresult ended = stream->session->ended();
  if (ended != CUDA_SUCCESS) return ended;
  return static_cast<CUresult>(stream->context->sticky.load(std::memory_order_acquire));
}

}  // namespace

// When a stream drains the worker says so by itself, so a wait for the newest call sends nothing.
// Whoever queues a call behind it asks after all (AskForWaiters), so both read what the other has
// stored.
void AwaitProgress(Stream* stream, uint64_t position) {
  static const bool asks = wire::IsSwitchedOff("unasked-progress");
  if (!asks && stream->last.load() <= position) {
    uint64_t awaited = stream->awaited.load();
    while (awaited < position && !stream->awaited.compare_exchange_weak(awaited, position)) {
    }
    if (stream->last.load() <= position) return;
  }
  Want(stream, position);
}

void Retain(Stream* stream) { stream->references.fetch_add(1, std::memory_order_relaxed); }

void Release(Stream* stream) {
  if (stream->references.fetch_sub(1, std::memory_order_acq_rel) == 1) Streams().Recycle(stream);
}

CUresult NewStream(Context* owner, StreamKind kind, unsigned flags, int priority,
                   Stream** created) {
  Context* context = owner->home;
  Stream* stream = Streams().New();
  if (stream == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  ClientSession& session = *context->session;
  stream->session = &session;
  stream->id = session.NewId();
  stream->context = context;
  stream->owner = owner;
  stream->context_number = owner->number.load();
  stream->kind = kind;
  stream->flags = flags;
  stream->priority = priority;
  stream->references.store(2);  // the handle's and the context's list
  session.AddStream(stream);
  calls::lwStreamCreate create;
  create.stream = stream->id;
  create.kind = static_cast<uint32_t>(kind);
  create.priority = priority;
  session.Submit({stream->context_number, nullptr, 0}, create);
  {
    base::MutexLock lock(context->mutex);
    context->streams.push_back(stream);
  }
  stream->handle = reinterpret_cast<CUstream>(Streams().Publish(stream));
  *created = stream;
  return CUDA_SUCCESS;
}

CUresult NewProgramStream(Context* owner, unsigned flags, int priority, CUstream* handle) {
  if ((flags & ~static_cast<unsigned>(CU_STREAM_NON_BLOCKING)) != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const wire::OpenReply& opened = owner->session->opened();
  // Lower numbers are greater.
  int low = std::min(opened.stream_priority_greatest, opened.stream_priority_least);
  int high = std::max(opened.stream_priority_greatest, opened.stream_priority_least);
  Stream* stream = nullptr;
  CUresult result = NewStream(
      owner,
      (flags & CU_STREAM_NON_BLOCKING) != 0 ? StreamKind::kNonBlocking : StreamKind::kBlocking,
      flags, std::clamp(priority, low, high), &stream);
  if (result == CUDA_SUCCESS) *handle = stream->handle;
  return result;
}

void DestroyStream(Stream* stream) {
  if (!Streams().Retire(stream)) return;
  ClientSession& session = *stream->session;
  session.AppendDeferred();
  uint64_t last = stream->last.load();
  if (!stream->Idle()) Want(stream, last);
  // With its context the worker has ended it already.
  if (stream->owner->number.load() == stream->context_number) {
    calls::lwStreamDestroy destroy;
    destroy.stream = stream->id;
    session.Submit({stream->context_number, nullptr, 0}, destroy);
  }
  session.ForgetStream(stream);
  Release(stream);
}

CUresult LegacyStream(Context* context, Stream** stream) {
  *stream = context->legacy.load(std::memory_order_acquire);
  if (*stream != nullptr) return CUDA_SUCCESS;
  // One thread makes it: the worker refuses a second one.
  static base::Mutex making{base::ranks::kLegacyStream};
  base::MutexLock lock(making);
  *stream = context->legacy.load(std::memory_order_acquire);
  if (*stream != nullptr) return CUDA_SUCCESS;
  CUresult result = NewStream(context, StreamKind::kLegacy, 0, 0, stream);
  if (result == CUDA_SUCCESS) context->legacy.store(*stream);
  return result;
}

CUresult OwnStream(Context* context, Stream** stream) {
  uint32_t number = context->number.load();
  std::vector<Stream*>& own = ThisThread().own_streams;
  for (Stream* known : own) {
    if (known->context_number == number) {
      *stream = known;
      return CUDA_SUCCESS;
    }
  }
  CUresult result = NewStream(context, StreamKind::kPerThread, 0, 0, stream);
  if (result == CUDA_SUCCESS) {
    Retain(*stream);
    own.push_back(*stream);
  }
  return result;
}

void DestroyThreadStreams(ThreadState& thread) {
  if (CurrentProcessState() != ProcessState::kReady) return;
  for (Stream* stream : thread.own_streams) {
    DestroyStream(stream);
    Release(stream);
  }
  thread.own_streams.clear();
}

CUresult FindStream(CUstream handle, Stream** stream) {
  if (handle == CU_STREAM_LEGACY || handle == nullptr || handle == CU_STREAM_PER_THREAD) {
    Context* owner = nullptr;
    LONGWIRE_TRY(RequireOwner(&owner));
    if (handle != CU_STREAM_PER_THREAD) return LegacyStream(owner, stream);
    // Threads have no streams of their own in green contexts.
    return owner->green != nullptr ? CUDA_ERROR_INVALID_HANDLE : OwnStream(owner, stream);
  }
  *stream = Streams().Find(reinterpret_cast<uint64_t>(handle));
  if (*stream != nullptr) {
    // A green context ends without its streams.
    bool orphan = (*stream)->owner->green != nullptr && (*stream)->owner->number.load() == 0;
    return orphan ? CUDA_ERROR_CONTEXT_IS_DESTROYED : CUDA_SUCCESS;
  }
  Context* context = nullptr;
  CUresult result = RequireContext(&context);
  return result != CUDA_SUCCESS ? result : CUDA_ERROR_INVALID_HANDLE;
}

void StreamRoom::Take(uint64_t position, uint64_t taken, uint64_t share) {
  bytes += taken;
  if (bytes < share / ends.size()) return;
  bytes = 0;
  ends[quarters++ % ends.size()] = position;
  newest.store(position, std::memory_order_release);
  oldest.store(ends[quarters % ends.size()], std::memory_order_release);
}

void WantProgress(Stream* stream, uint64_t position) {
  if (stream->finished.load(std::memory_order_acquire) < position) Want(stream, position);
}

void AskForWaiters(Stream* stream) {
  uint64_t awaited = stream->awaited.load();
  if (awaited > stream->finished.load(std::memory_order_acquire)) Want(stream, awaited);
}

uint64_t AwaitedForRoom(Stream* stream) {
  // Asked for as soon as a quarter is full, so that the answer is usually there in time.
  uint64_t newest = stream->room.newest.load(std::memory_order_acquire);
  if (newest > stream->wanted.load(std::memory_order_relaxed)) Want(stream, newest);
  uint64_t oldest = stream->room.oldest.load(std::memory_order_acquire);
  return stream->finished.load(std::memory_order_acquire) >= oldest ? 0 : oldest;
}

CUresult AwaitStream(Stream* stream, uint64_t position) {
  if (stream->finished.load(std::memory_order_acquire) < position) {
    AwaitProgress(stream, position);
    bool done = stream->session->WaitUntil([&] {
      return stream->finished.load(std::memory_order_acquire) >= position ||
             stream->context->sticky.load(std::memory_order_acquire) != 0;
    });
    if (!done) return stream->session->ended();
  }
  return ContextError(stream);
}

CUresult PollStream(Stream* stream, uint64_t position) {
  LONGWIRE_TRY(ContextError(stream));
  if (stream->finished.load(std::memory_order_acquire) >= position) return CUDA_SUCCESS;
  AwaitProgress(stream, position);
  stream->session->ReadWithoutWaiting();
  if (stream->finished.load(std::memory_order_acquire) < position) {
    LONGWIRE_TRY(ContextError(stream));
    return CUDA_ERROR_NOT_READY;
  }
  return CUDA_SUCCESS;
}

bool WaitCovers(const Stream* awaited, const Stream* other) {
  if (awaited == other) return true;
  return awaited->kind == StreamKind::kLegacy && other->kind != StreamKind::kNonBlocking &&
         awaited->owner == other->owner;
}

bool IsOrdered(const Stream* stream, const Stream* earlier) {
  return stream != nullptr && (WaitCovers(stream, earlier) || WaitCovers(earlier, stream));
}

namespace {

// Of the stream, and of all with which its next work is ordered.
bool AreAll(const Stream* stream, bool (Stream::*so)() const) {
  if (!(stream->*so)()) return false;
  if (stream->kind == StreamKind::kNonBlocking) return true;
  base::MutexLock lock(stream->context->mutex);
  return std::ranges::all_of(stream->context->streams, [&](const Stream* earlier) {
    return !IsOrdered(stream, earlier) || (earlier->*so)();
  });
}

}  // namespace

bool IsReachedAtOnce(const Stream* stream) { return AreAll(stream, &Stream::Unheld); }

bool IsFinished(const Stream* stream) { return AreAll(stream, &Stream::Idle); }

bool IsBorder(const Stream* stream) {
  if (stream->kind != StreamKind::kLegacy) return false;
  base::MutexLock lock(stream->context->mutex);
  return std::ranges::any_of(stream->context->streams, [&](const Stream* other) {
    return other != stream && IsOrdered(stream, other) && !other->Idle();
  });
}

bool Belongs(const Stream* stream, const Context* context) {
  return stream->context == context || stream->owner == context;
}

std::vector<StreamPoint> UnfinishedWork(Context* context) {
  std::vector<StreamPoint> points;
  std::vector<Stream*> gone;
  {
    base::MutexLock lock(context->home->mutex);
    std::vector<Stream*>& streams = context->home->streams;
    for (size_t i = 0; i < streams.size();) {
      Stream* stream = streams[i];
      if (!Belongs(stream, context)) {
        ++i;
        continue;
      }
      if (!stream->Idle()) {
        Retain(stream);
        points.push_back({stream, stream->last.load()});
      } else if (stream->destroyed.load()) {
        gone.push_back(stream);
        streams[i] = streams.back();
        streams.pop_back();
        continue;
      }
      ++i;
    }
  }
  for (Stream* stream : gone) Release(stream);
  return points;
}

std::vector<StreamPoint> UnfinishedBefore(const Stream* stream) {
  std::vector<StreamPoint> points;
  uint64_t last = stream->last.load();
  base::MutexLock lock(stream->context->mutex);
  for (Stream* earlier : stream->context->streams) {
    // What stands before the stream's own newest call is finished with that.
    bool counts = earlier == stream || (IsOrdered(stream, earlier) && earlier->last.load() > last);
    if (!counts || earlier->Idle()) continue;
    Retain(earlier);
    points.push_back({earlier, earlier->last.load()});
  }
  return points;
}

CUresult AwaitWork(std::span<const StreamPoint> points) {
  for (const StreamPoint& point : points) {
    // What a context failed with its own calls say; the points may be of several.
    static_cast<void>(AwaitStream(point.stream, point.position));
    Release(point.stream);
  }
  return ClientSession::over();
}

bool StreamUniqueId(CUcontext context, CUstream handle, uint64_t* id) {
  Stream* stream = nullptr;
  if (handle == nullptr || handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD) {
    Context* found = FindContext(context);
    if (found == nullptr || (found->number.load() == 0 && !found->primary)) return false;
    if (found->number.load() == 0 && ActivatePrimary(found) != CUDA_SUCCESS) return false;
    bool own = handle == CU_STREAM_PER_THREAD;
    if (own && found->green != nullptr) return false;
    CUresult result = own ? OwnStream(found, &stream) : LegacyStream(found, &stream);
    if (result != CUDA_SUCCESS) return false;
  } else {
    stream = Streams().Find(reinterpret_cast<uint64_t>(handle));
    if (stream == nullptr) return false;
  }
  *id = stream->id;
  return true;
}

}  // namespace longwire::shim
