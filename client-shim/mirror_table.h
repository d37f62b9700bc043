// What mirrors.cc and mirror_pulls.cc share of the mirrors.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "client-shim/context.h"
#include "client-shim/mirrors.h"
#include "client-shim/session.h"
#include "client-shim/stream.h"

namespace longwire::shim {

// The stream through which a context's mirrors are exchanged, and the event behind what was sent.
struct Channel {
  Stream* stream = nullptr;  // retained
  uint64_t event = 0;
  uint64_t version = 0;
  uint64_t position = 0;  // of the newest record
  uint64_t sent = 0;      // Mirrors::sent at that time

  Where where() const { return {stream->context_number, stream, 0}; }
};

struct Mirror {
  uint64_t id = 0;
  MirrorRange range;
  uint64_t reserved = 0;  // bytes of the shadow
  std::byte* shadow = nullptr;
  std::shared_ptr<Channel> channel;
  bool host_turn = true;  // the program may have written since it was compared

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

  std::mutex arrived_mutex;  // innermost
  std::vector<Arrived> arrived;
};

Mirrors& TheMirrors();

// The lock is held.
inline bool IsChannel(const Mirrors& mirrors, const Stream* stream) {
  return std::any_of(mirrors.channels.begin(), mirrors.channels.end(),
                     [&](const auto& entry) { return entry.second->stream == stream; });
}

}  // namespace longwire::shim
