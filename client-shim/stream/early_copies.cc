#include "client-shim/stream/early_copies.h"

#include <algorithm>
#include <atomic>
#include <vector>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "client-shim/context/context.h"
#include "client-shim/memory/sharing.h"
#include "client-shim/mirror/mirrors.h"
#include "client-shim/session/pinned_segment.h"
#include "client-shim/session/session.h"
#include "client-shim/stream/host_writes.h"
#include "client-shim/support/never_destroyed.h"
#include "wire/guards.h"
#include "wire/switches.h"

namespace longwire::shim {
namespace {

struct LateCopy {
  Stream* stream = nullptr;  // retained, as those of the points
  uint64_t position = 0;
  std::vector<StreamPoint> before;
};

struct EarlyCopies {
  std::atomic<uint64_t> noted{0};                // how many so far
  base::Mutex mutex{base::ranks::kEarlyCopies};  // also taken while the log's lock is held
  std::vector<Stream*> streams LONGWIRE_GUARDED_BY(mutex);  // retained, that have unfinished ones
  std::vector<LateCopy> late LONGWIRE_GUARDED_BY(mutex);
  std::atomic<size_t> late_count{0};
};

EarlyCopies& TheEarlyCopies() {
  static NeverDestroyed<EarlyCopies> copies;
  return *copies;
}

bool HasUnorderedStreams(const Stream* earlier) LONGWIRE_REQUIRES(earlier->context->mutex) {
  return std::ranges::any_of(earlier->context->streams, [&](const Stream* stream) {
    return !stream->internal && !stream->destroyed.load() && !IsOrdered(stream, earlier);
  });
}

// Nothing is unfinished but early copies: the next one finishes whatever others do or wait for.
bool NothingElseIsUnfinished() {
  bool nothing = true;
  for (StreamPoint& point : UnfinishedWorkOfAll()) {
    nothing &= point.position <= point.stream->sync_copy.load();
    Release(point.stream);
  }
  return nothing;
}

bool IsOver(const StreamPoint& point) {
  return point.stream->finished.load(std::memory_order_acquire) >= point.position ||
         point.stream->context->sticky.load(std::memory_order_acquire) != 0;
}

void Note(Stream* stream, std::atomic<uint64_t>* newest, uint64_t position) {
  EarlyCopies& copies = TheEarlyCopies();
  base::MutexLock lock(copies.mutex);
  newest->store(std::max(newest->load(), position));
  if (std::ranges::find(copies.streams, stream) == copies.streams.end()) {
    Retain(stream);
    copies.streams.push_back(stream);
  }
  copies.noted.fetch_add(1, std::memory_order_release);
}

// Adds the early copies and the reuse that the stream's work must wait for.
void AddEarly(EarlyCopies& copies, const Stream* stream, std::vector<StreamPoint>* points)
    LONGWIRE_REQUIRES(copies.mutex) {
  static const bool guard_off = wire::GuardIsOff("early_work");
  std::erase_if(copies.streams, [&](Stream* earlier) {
    StreamPoint point{earlier, std::max(earlier->sync_copy.load(), earlier->reused.load())};
    bool over = IsOver(point);
    if (!over && !guard_off && !IsOrdered(stream, earlier)) {
      Retain(earlier);
      points->push_back(point);
    }
    if (over) Release(earlier);
    return over;
  });
}

// Adds the late copies that it must wait for.
void AddLateCopies(EarlyCopies& copies, const Stream* stream, std::vector<StreamPoint>* points)
    LONGWIRE_REQUIRES(copies.mutex) {
  static const bool guard_off = wire::GuardIsOff("late_copies");
  if (guard_off) return;
  std::erase_if(copies.late, [&](LateCopy& late) {
    StreamPoint copy{late.stream, late.position};
    if (!IsOver(copy)) {
      bool told = std::ranges::all_of(late.before, IsOver);
      if (told && !IsOrdered(stream, late.stream)) {
        Retain(copy.stream);
        points->push_back(copy);
      }
      return false;
    }
    for (StreamPoint& point : late.before) Release(point.stream);
    Release(late.stream);
    return true;
  });
  copies.late_count.store(copies.late.size());
}

// Work of other streams will wait for the early copy. What is queued behind it now may hold the
// stream up, and the worker tells the end of both unless it is asked before.
void AskForEnd(Stream* stream) {
  const uint64_t copy = stream->sync_copy.load();
  bool asked = stream->wanted.load(std::memory_order_relaxed) >= copy;
  if (asked || stream->finished.load(std::memory_order_acquire) >= copy) return;
  {
    base::MutexLock lock(stream->context->mutex);
    if (!HasUnorderedStreams(stream)) return;
  }
  uint64_t awaited = stream->awaited.load();
  while (awaited < copy && !stream->awaited.compare_exchange_weak(awaited, copy)) {
  }
  AskForWaiters(stream);
}

}  // namespace

bool MayReturnEarly(Stream* stream) {
  static const bool never = wire::IsSwitchedOff("early-copies");
  if (never || AreSeveral() || MemoryIsShared()) return false;
  if (NothingElseIsUnfinished()) return true;
  // The copy would end a wait for earlier work, of which the program must not see anything missing.
  {
    base::MutexLock lock(stream->context->mutex);
    if (HasUnorderedStreams(stream)) return false;
  }
  return !AnyMirrors() && !AnyLive() && !HostWritePending(0, kAnywhere);
}

void NoteEarlyCopy(Stream* stream, uint64_t position) {
  Note(stream, &stream->sync_copy, position);
}

bool PutAllBehind(Stream* stream, uint64_t position) {
  static const bool never = wire::IsSwitchedOff("early-reuse");
  if (never || AreSeveral() || MemoryIsShared() || !IsOnlyContext(stream->context)) return false;
  if (!stream->context->mutex.TryLock()) return false;
  base::MutexLock lock(stream->context->mutex, base::AdoptLock());
  if (HasUnorderedStreams(stream)) return false;
  Note(stream, &stream->reused, position);
  return true;
}

void NoteLateCopy(Stream* stream, uint64_t position, const std::vector<StreamPoint>& before) {
  EarlyCopies& copies = TheEarlyCopies();
  base::MutexLock lock(copies.mutex);
  Retain(stream);
  for (const StreamPoint& point : before) Retain(point.stream);
  copies.late.push_back({stream, position, before});
  copies.late_count.store(copies.late.size());
}

CUresult AwaitEarlyCopies(Stream* stream) {
  if (stream != nullptr) {
    stream->session->AppendDeferred();  // of several servers none defers
  } else {
    for (ClientSession* session : Sessions()) session->AppendDeferred();
  }
  if (stream != nullptr) AskForEnd(stream);
  EarlyCopies& copies = TheEarlyCopies();
  uint64_t noted = copies.noted.load(std::memory_order_acquire);
  bool seen = stream != nullptr && stream->early_seen.load(std::memory_order_acquire) >= noted;
  if (seen && copies.late_count.load() == 0) return CUDA_SUCCESS;
  std::vector<StreamPoint> points;
  {
    base::MutexLock lock(copies.mutex);
    AddEarly(copies, stream, &points);
    AddLateCopies(copies, stream, &points);
  }
  CUresult result = AwaitWork(points);
  bool waited = result == CUDA_SUCCESS && stream != nullptr;
  if (waited) stream->early_seen.store(noted, std::memory_order_release);
  return result;
}

}  // namespace longwire::shim
