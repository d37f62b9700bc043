// The mirrors' data, shared by mirrors.cc, mirror_pushes.cc and mirror_pulls.cc.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "client-shim/context/context.h"
#include "client-shim/mirror/mirrors.h"
#include "client-shim/session/session.h"
#include "client-shim/stream/stream.h"
#include "wire/page_delta.h"

namespace longwire::shim {

// The stream through which a context's mirrors are exchanged, and the event recorded after each
// push.
struct Channel {
  Stream* stream = nullptr;  // retained
  uint64_t event = 0;
  uint64_t version = 0;
  // The event's newest record after a push: its position, and Mirrors::sent at that time.
  uint64_t position = 0, sent = 0, sent_version = 0;
  bool promised = false;           // queued work waits for the next version of the event
  std::atomic<bool> ended{false};  // with its context: nothing more comes

  Where where() const { return {stream->context_number, stream, 0, stream->session}; }
};

struct Mirror {
  uint64_t id = 0;
  MirrorRange range;
  uint64_t reserved = 0;  // bytes of the shadow
  std::byte* shadow = nullptr;
  std::shared_ptr<Channel> channel;
  bool vanished = false;  // the program has freed its memory, or it cannot be reached
  bool lost = false;      // the latter
  // Of memory in files: the last two copies.
  std::vector<std::byte> state, earlier;

  std::span<const std::byte> memory() const {
    return {reinterpret_cast<std::byte*>(range.address), range.bytes};
  }
};

// A worker's answer to a pull: changes of a mirror; or no changes, and a ticket instead of the
// mirror.
struct Arrived {
  uint64_t mirror;
  std::vector<std::byte> delta;
};

struct Mirrors {
  // Without a rank: held while a push waits for room in its stream.
  base::Mutex mutex;
  std::map<uint64_t, std::unique_ptr<Mirror>> by_address LONGWIRE_GUARDED_BY(mutex);
  // By context number.
  std::map<uint32_t, std::shared_ptr<Channel>> channels LONGWIRE_GUARDED_BY(mutex);
  uint64_t sent LONGWIRE_GUARDED_BY(mutex) = 0;   // number of pushes
  uint64_t works LONGWIRE_GUARDED_BY(mutex) = 0;  // DeviceWork begun
  uint32_t begun LONGWIRE_GUARDED_BY(mutex) = 0;  // and not ended
  // The values of `sent` at which the pulls under way were asked for.
  std::multiset<uint64_t> asked LONGWIRE_GUARDED_BY(mutex);
  std::set<uint64_t> answered LONGWIRE_GUARDED_BY(mutex);  // tickets that came back, not taken yet
  std::atomic<bool> handed{false};  // the device may have written since the last pull
  // A thread pulls and waits for the answer, without the lock. One at a time.
  bool pulling LONGWIRE_GUARDED_BY(mutex) = false;
  // A whole state is on its way, which the thread that asked for it is to apply.
  bool awaits_state LONGWIRE_GUARDED_BY(mutex) = false;
  base::CondVar pulled;  // either has ended

  // Comparisons that are made a moment after the work that needs them was queued.
  uint64_t comparison LONGWIRE_GUARDED_BY(mutex) = 1;  // number of the next one
  uint64_t compared LONGWIRE_GUARDED_BY(mutex) = 0;    // bytes, by the last one
  // Works that wait for the next one.
  uint32_t works_promised LONGWIRE_GUARDED_BY(mutex) = 0;
  // Works while the program waited for nothing.
  uint32_t works_since_wait LONGWIRE_GUARDED_BY(mutex) = 0;
  uint64_t waits LONGWIRE_GUARDED_BY(mutex) = 0;  // that the program has begun
  bool comparer_sleeps LONGWIRE_GUARDED_BY(mutex) = false;
  base::CondVar promise;  // made while it sleeps

  // The thread that exchanges while work runs (live_exchange.h).
  bool watcher_sleeps LONGWIRE_GUARDED_BY(mutex) = false;
  base::CondVar work_begun;                            // while it sleeps
  uint64_t applied LONGWIRE_GUARDED_BY(mutex) = 0;     // deltas with changes
  uint64_t words LONGWIRE_GUARDED_BY(mutex) = 0;       // that this thread has sent
  bool sent_state LONGWIRE_GUARDED_BY(mutex) = false;  // of several words, at least once
  // States were exchanged; and a stream has not moved for a moment.
  bool converses LONGWIRE_GUARDED_BY(mutex) = false, stands_still
                                                     LONGWIRE_GUARDED_BY(mutex) = false;

  base::Mutex arrived_mutex{base::ranks::kMirrorDeltas};
  std::vector<Arrived> arrived LONGWIRE_GUARDED_BY(arrived_mutex);
  // Bytes of deltas that the worker may still send.
  std::atomic<int64_t> awaited{0};

  // Each delta counts with this, even if it is empty.
  static constexpr int64_t kDeltaCost = 16;
  // Called before a pull of these bytes is queued.
  void AwaitChanges(uint64_t bytes) {
    auto pages = static_cast<int64_t>(bytes / wire::kDeltaPageBytes) + 2;
    awaited.fetch_add(pages * int64_t{wire::kMaxDeltaOfPage + kDeltaCost} + kDeltaCost);
  }
  // The same for a push, which may be answered with a conflict.
  void AwaitConflict() { awaited.fetch_add(int64_t{wire::kMaxDeltaOfPage} + kDeltaCost); }
};

Mirrors& TheMirrors();

// Records the channel's event after a push: later work waits for it.
void RecordSent(Mirrors& mirrors, Channel& channel) LONGWIRE_REQUIRES(mirrors.mutex);
// Makes the comparison for which queued work waits, if any does. To be called before anything else
// is queued in a channel, which the worker may delay until that work has finished.
void KeepPromise(Mirrors& mirrors) LONGWIRE_REQUIRES(mirrors.mutex);
// Applies all answers that have come, in their order, whichever pull they belong to.
void ApplyArrived(Mirrors& mirrors) LONGWIRE_REQUIRES(mirrors.mutex);
// Prints that both sides have changed the byte at the offset; the next call that may return a late
// error returns one.
void ReportConflict(const Mirror& mirror, uint64_t offset);
// Waits until no pull is under way, and no state; the lock is released meanwhile.
void AwaitPull(Mirrors& mirrors, base::MutexLock& lock) LONGWIRE_REQUIRES(mirrors.mutex);

// Whether the mirror's memory can be touched: not if the program has freed it, even if it has other
// memory there since. Mirrors::mutex is held.
bool IsThere(Mirror& mirror);

inline std::map<uint64_t, Mirror*> MirrorsById(Mirrors& mirrors) LONGWIRE_REQUIRES(mirrors.mutex) {
  std::map<uint64_t, Mirror*> by_id;
  for (auto& [address, mirror] : mirrors.by_address) by_id[mirror->id] = mirror.get();
  return by_id;
}

inline bool IsChannel(const Mirrors& mirrors, const Stream* stream)
    LONGWIRE_REQUIRES(mirrors.mutex) {
  return std::any_of(mirrors.channels.begin(), mirrors.channels.end(),
                     [&](const auto& entry) { return entry.second->stream == stream; });
}

}  // namespace longwire::shim
