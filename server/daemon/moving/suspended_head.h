// What stands first in a file with a suspended session: its length in 32 bits, this, the bytes that
// the rings hold, and then what the worker wrote.
#pragma once

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "server/daemon/checkpoints/suspended.h"
#include "server/daemon/sessions/lane_notes.h"

namespace longwire::daemon {

struct SuspendedRing {
  uint64_t bytes = 0;  // of the ring
  uint64_t written = 0;
  uint64_t released = 0;
  auto Fields() { return std::tie(bytes, written, released); }
};

struct SuspendedHead {
  static constexpr uint32_t kKind = 443;
  std::string request;               // a wire::OpenRequest for the new worker
  std::vector<SuspendedRing> rings;  // of each lane the one up and the one down
  auto Fields() { return std::tie(request, rings); }
};

inline constexpr uint32_t kMaxSuspendedHead = 128 << 10;

TicketLane LaneOf(const LaneNote& note);
LaneNote NoteOf(const TicketLane& lane);

// The operator's key; none where there is none. False with a sentence.
bool KeyOf(const config::Config& config, std::optional<CheckpointKey>* key, std::string* sentence);

}  // namespace longwire::daemon
