#include "client-shim/copy/held_copies.h"

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

struct HeldCopy {
  HeldCopy() = default;
  HeldCopy(const HeldCopy&) = delete;
  HeldCopy& operator=(const HeldCopy&) = delete;
  ~HeldCopy() {
    for (StreamPoint& point : before) Release(point.stream);
    if (stream != nullptr) Release(stream);
  }

  uint64_t key = 0;
  Stream* stream = nullptr;
  Allocation source, target;
  std::vector<StreamPoint> before;  // all that was unfinished when it was held
};

struct Deferred {
  base::Mutex mutex{base::ranks::kRemapCopy};  // also taken while the log's lock is held
  std::shared_ptr<HeldCopy> newest LONGWIRE_GUARDED_BY(mutex);
};

Deferred& TheDeferred() {
  static NeverDestroyed<Deferred> deferred;
  return *deferred;
}

std::shared_ptr<HeldCopy> Newest() {
  Deferred& deferred = TheDeferred();
  base::MutexLock lock(deferred.mutex);
  return deferred.newest;
}

// The copy before it ends without the lock: that releases streams.
void SetNewest(std::shared_ptr<HeldCopy> held) {
  Deferred& deferred = TheDeferred();
  base::MutexLock lock(deferred.mutex);
  deferred.newest.swap(held);
}

bool IsPlain(const calls::Place& place) {
  return place.array == 0 && place.x_bytes == 0 && place.y == 0 && place.z == 0 &&
         place.rows == 1 && place.slices == 1;
}

// All of one allocation, to the start of a larger one of the same device.
bool IsGrowth(const calls::lwCopyDevice& copy, HeldCopy* held) {
  Allocation &source = held->source, &target = held->target;
  if (!IsPlain(copy.source) || !IsPlain(copy.destination)) return false;
  if (!FindAllocation(copy.source.address, &source) ||
      !FindAllocation(copy.destination.address, &target)) {
    return false;
  }
  return source.address == copy.source.address && target.address == copy.destination.address &&
         copy.bytes == source.bytes && source.bytes < target.bytes &&
         DeviceOfAddress(source.address) == DeviceOfAddress(target.address);
}

// Nobody looks at the memory but work that this session queues.
bool IsOwn(const Allocation& allocation) {
  return !allocation.shared && !IsMirrored(allocation.address) &&
         !HasSyncMemops(allocation.address);
}

// What other work writes into the old memory after the copy has read it must not appear in the new.
bool AllIsBefore(const HeldCopy& held) {
  static const bool guard_off = wire::GuardIsOff("unordered");
  return guard_off || std::ranges::all_of(held.before, [&](const StreamPoint& point) {
           return WaitCovers(held.stream, point.stream);
         });
}

void Forget(const std::shared_ptr<HeldCopy>& held) {
  Deferred& deferred = TheDeferred();
  base::MutexLock lock(deferred.mutex);
  if (deferred.newest == held) deferred.newest = nullptr;
}

bool MayHold(const Stream* stream, const Where& where, const calls::lwCopyDevice& copy,
             HeldCopy* held) {
  static const bool never = wire::IsSwitchedOff("remap");
  if (never || where.flags != 0 || stream->context->captures.load() != 0 || AnyMirrors()) {
    return false;
  }
  if (!IsGrowth(copy, held) || !IsOwn(held->source) || !IsOwn(held->target)) return false;
  return stream->context->device == DeviceOfAddress(held->source.address);
}

}  // namespace

bool HoldCopy(Stream* stream, const Where& where, const calls::lwCopyDevice& copy) {
  Session& session = TheSession();
  uint64_t work = session.newest_work();
  auto held = std::make_shared<HeldCopy>();
  if (!MayHold(stream, where, copy, held.get())) return false;
  held->key = session.NewId();
  Retain(stream);
  held->stream = stream;
  held->before = UnfinishedWorkOfAll();
  if (!AllIsBefore(*held)) return false;
  if (!MemoryOf(stream->context->device)->MayMove(held->source, held->target, work)) return false;
  SetNewest(held);
  auto ended = [held](uint64_t position) {
    if (position != Session::kNoPosition) NoteLateCopy(held->stream, position, held->before);
    Forget(held);
  };
  if (session.Keep(where, copy, work, held->key, ended)) return true;
  Forget(held);
  return false;
}

bool FreeAfterCopy(uint64_t address, const Stream* stream) {
  Session& session = TheSession();
  if (!session.keeps()) return false;
  std::shared_ptr<HeldCopy> held = Newest();
  if (held == nullptr) return false;
  bool from = held->source.address == address, to = held->target.address == address;
  if (!from && !to) return false;
  bool moves = from && (stream == nullptr || stream == held->stream);
  // What is still to touch the start of the new buffer has to be over before other memory is there.
  for (const StreamPoint& point : held->before) {
    bool waits = stream == nullptr;
    if (moves && waits) moves = AwaitStream(point.stream, point.position) == CUDA_SUCCESS;
    moves = moves && point.stream->finished.load() >= point.position;
  }
  DeviceMemory* memory = MemoryOf(DeviceOfAddress(address));
  if (moves && memory->Move(held->source, held->target, held->key)) {
    session.counts().remaps.fetch_add(1, std::memory_order_relaxed);
    session.counts().remapped.fetch_add(held->source.bytes, std::memory_order_relaxed);
    return true;
  }
  session.AppendKept();
  return false;
}

}  // namespace longwire::shim
