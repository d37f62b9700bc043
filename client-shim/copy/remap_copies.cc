#include "client-shim/copy/remap_copies.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "client-shim/context/context.h"
#include "client-shim/context/properties.h"
#include "client-shim/memory/device_memory.h"
#include "client-shim/memory/pointers.h"
#include "client-shim/mirror/mirrors.h"
#include "client-shim/session/session.h"
#include "client-shim/stream/early_copies.h"
#include "client-shim/support/never_destroyed.h"
#include "wire/guards.h"
#include "wire/switches.h"

namespace longwire::shim {
namespace {

struct RemapCopy {
  RemapCopy() = default;
  RemapCopy(const RemapCopy&) = delete;
  RemapCopy& operator=(const RemapCopy&) = delete;
  ~RemapCopy() {
    for (StreamPoint& point : before) Release(point.stream);
    if (stream != nullptr) Release(stream);
  }

  uint64_t key = 0;
  Stream* stream = nullptr;
  Allocation source, target;
  std::vector<StreamPoint> before;  // all work that was unfinished when it was deferred
};

struct Deferred {
  base::Mutex mutex{base::ranks::kRemapCopy};  // also taken while the log's lock is held
  std::shared_ptr<RemapCopy> newest LONGWIRE_GUARDED_BY(mutex);
};

Deferred& TheDeferred() {
  static NeverDestroyed<Deferred> deferred;
  return *deferred;
}

std::shared_ptr<RemapCopy> Newest() {
  Deferred& deferred = TheDeferred();
  base::MutexLock lock(deferred.mutex);
  return deferred.newest;
}

// The previous copy is destroyed after the lock is released: that releases streams.
void SetNewest(std::shared_ptr<RemapCopy> remap) {
  Deferred& deferred = TheDeferred();
  base::MutexLock lock(deferred.mutex);
  deferred.newest.swap(remap);
}

bool IsPlain(const calls::Place& place) {
  return place.array == 0 && place.x_bytes == 0 && place.y == 0 && place.z == 0 &&
         place.rows == 1 && place.slices == 1;
}

// A copy of all of one allocation to the start of a larger one of the same device.
bool IsGrowth(const calls::lwCopyDevice& copy, RemapCopy* remap) {
  Allocation &source = remap->source, &target = remap->target;
  if (!IsPlain(copy.source) || !IsPlain(copy.destination)) return false;
  if (!FindAllocation(copy.source.address, &source) ||
      !FindAllocation(copy.destination.address, &target)) {
    return false;
  }
  return source.address == copy.source.address && target.address == copy.destination.address &&
         copy.bytes == source.bytes && source.bytes < target.bytes &&
         DeviceOfAddress(source.address) == DeviceOfAddress(target.address);
}

// Only work that this session queues can see the memory.
bool IsOwn(const Allocation& allocation) {
  return !allocation.shared && !IsMirrored(allocation.address) &&
         !HasSyncMemops(allocation.address);
}

// What other work writes into the old memory after the copy has read it must not appear in the new
// buffer: all unfinished work has to be ordered before the copy.
bool AllIsBefore(const RemapCopy& remap) {
  static const bool guard_off = wire::GuardIsOff("unordered");
  return guard_off || std::ranges::all_of(remap.before, [&](const StreamPoint& point) {
           return WaitCovers(remap.stream, point.stream);
         });
}

void Forget(const std::shared_ptr<RemapCopy>& remap) {
  Deferred& deferred = TheDeferred();
  base::MutexLock lock(deferred.mutex);
  if (deferred.newest == remap) deferred.newest = nullptr;
}

bool MayDefer(const Stream* stream, const Where& where, const calls::lwCopyDevice& copy,
              RemapCopy* remap) {
  static const bool never = wire::IsSwitchedOff("remap");
  if (never || AreSeveral() || where.flags != 0 || stream->context->captures.load() != 0 ||
      AnyMirrors()) {
    return false;
  }
  if (!IsGrowth(copy, remap) || !IsOwn(remap->source) || !IsOwn(remap->target)) return false;
  return stream->context->device == DeviceOfAddress(remap->source.address);
}

}  // namespace

bool DeferCopy(Stream* stream, const Where& where, const calls::lwCopyDevice& copy) {
  ClientSession& session = *stream->session;
  uint64_t work = session.newest_work();
  auto remap = std::make_shared<RemapCopy>();
  if (!MayDefer(stream, where, copy, remap.get())) return false;
  remap->key = session.NewId();
  Retain(stream);
  remap->stream = stream;
  remap->before = UnfinishedWorkOfAll();
  if (!AllIsBefore(*remap)) return false;
  if (!MemoryOf(stream->context->device)->MayMove(remap->source, remap->target, work)) return false;
  SetNewest(remap);
  auto ended = [remap](uint64_t position) {
    if (position != ClientSession::kNoPosition)
      NoteLateCopy(remap->stream, position, remap->before);
    Forget(remap);
  };
  if (session.Defer(where, copy, work, remap->key, ended)) return true;
  Forget(remap);
  return false;
}

bool FreeAfterCopy(uint64_t address, const Stream* stream) {
  std::shared_ptr<RemapCopy> remap = Newest();
  if (remap == nullptr) return false;
  ClientSession& session = *remap->stream->session;
  if (!session.has_deferred()) return false;
  bool from = remap->source.address == address, to = remap->target.address == address;
  if (!from && !to) return false;
  bool moves = from && (stream == nullptr || stream == remap->stream);
  // Work that touches the start of the new buffer has to finish before other memory is mapped
  // there.
  for (const StreamPoint& point : remap->before) {
    bool waits = stream == nullptr;
    if (moves && waits) moves = AwaitStream(point.stream, point.position) == CUDA_SUCCESS;
    moves = moves && point.stream->finished.load() >= point.position;
  }
  DeviceMemory* memory = MemoryOf(DeviceOfAddress(address));
  if (moves && memory->Move(remap->source, remap->target, remap->key)) {
    session.counts().remaps.fetch_add(1, std::memory_order_relaxed);
    session.counts().remapped.fetch_add(remap->source.bytes, std::memory_order_relaxed);
    return true;
  }
  session.AppendDeferred();
  return false;
}

}  // namespace longwire::shim
