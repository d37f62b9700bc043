// What mirrors.cc, mirror_pushes.cc and mirror_pulls.cc share of the mirrors.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "client-shim/context/context.h"
#include "client-shim/mirror/mirrors.h"
#include "client-shim/session/session.h"
#include "client-shim/stream/stream.h"

namespace longwire::shim {

// The stream through which a context's mirrors are exchanged, and the event behind what was sent.
struct Channel {
  Stream* stream = nullptr;  // retained
  uint64_t event = 0;
  uint64_t version = 0;
  // The newest record, behind something that was sent: its place, Mirrors::sent at that time.
  uint64_t position = 0, sent = 0, sent_version = 0;
  bool promised = false;  // queued work waits for the next version of the event

  Where where() const { return {stream->context_number, stream, 0}; }
};

struct Mirror {
  uint64_t id = 0;
  MirrorRange range;
  uint64_t reserved = 0;  // bytes of the shadow
  std::byte* shadow = nullptr;
  std::shared_ptr<Channel> channel;
  bool vanished = false;  // its memory is no more the program's

  std::span<const std::byte> memory() const {
    return {reinterpret_cast<std::byte*>(range.address), range.bytes};
  }
};

// What came of a pull: changes, or none and a ticket instead of the mirror.
struct Arrived {
  uint64_t mirror;
  std::vector<std::byte> delta;
};

struct Mirrors {
  std::mutex pull_mutex;  // one pull in the channels at a time; before mutex
  std::mutex mutex;       // guards what follows
  std::map<uint64_t, std::unique_ptr<Mirror>> by_address;
  std::map<uint32_t, std::shared_ptr<Channel>> channels;  // by context number
  uint64_t sent = 0;                                      // times that something was sent
  uint64_t works = 0;                                     // DeviceWork begun
  uint32_t begun = 0;                                     // and not ended
  std::multiset<uint64_t> asked;    // `sent` as it was when pulls under way were asked for
  std::set<uint64_t> said;          // tickets that came, until they are looked for
  std::atomic<bool> handed{false};  // the device may have written since the last pull

  // Comparisons that are made a moment after the work that needs them was queued.
  uint64_t comparison = 1;        // number of the next one
  uint64_t compared = 0;          // bytes, by the last one
  uint32_t works_promised = 0;    // works that wait for the next one
  uint32_t works_since_wait = 0;  // works while the program waited for nothing
  bool comparer_sleeps = false;
  std::condition_variable promise;  // made while it sleeps

  std::mutex arrived_mutex;  // innermost
  std::vector<Arrived> arrived;
};

Mirrors& TheMirrors();

// The lock is held in these.
// Something was sent through the channel: later work waits for this place.
void RecordSent(Mirrors& mirrors, Channel& channel);
// Makes the comparison that queued work waits for, if any does. Whatever else goes through a
// channel must come behind it: the worker may hold that until the queued work is finished.
void KeepPromise(Mirrors& mirrors);

// Whether the mirror's memory can be touched: not if the program has freed it, even if it has other
// memory there since. The lock is held.
bool IsThere(Mirror& mirror);

// The lock is held.
inline bool IsChannel(const Mirrors& mirrors, const Stream* stream) {
  return std::any_of(mirrors.channels.begin(), mirrors.channels.end(),
                     [&](const auto& entry) { return entry.second->stream == stream; });
}

}  // namespace longwire::shim
