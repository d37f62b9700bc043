// What the next daemon has to know of a session's lanes, in a page of memory that the warden keeps
// for it. A daemon may be killed at any moment: each note is written beside the one before, which
// counts until the new one is whole.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "server/daemon/settings/token.h"
#include "wire/rings/segment.h"
#include "wire/socket.h"

namespace longwire::daemon {

struct LaneNote {
  TokenHash token{};
  TokenHash previous_token{};  // that the client sent last
  uint64_t received = 0;       // of the up log, when its connection began
  uint32_t epoch = 0;          // of its connection; 0: there was none
  bool previous_good = false;  // until the client has sent the new token
  bool first_attach = false;   // its connection is the lane's first
};

class LaneNotes {
 public:
  // nullptr on failure.
  static std::shared_ptr<LaneNotes> Create();
  // nullptr if the descriptor is no such page.
  static std::shared_ptr<LaneNotes> Map(wire::Descriptor memory);

  // Of a lane (its index), by one thread at a time.
  void Write(uint32_t lane, const LaneNote& note);
  LaneNote Read(uint32_t lane) const;

  int descriptor() const { return memory_.get(); }

 private:
  struct Content;
  LaneNotes() = default;
  bool Map();
  Content& content() const;

  wire::Descriptor memory_;
  std::unique_ptr<wire::SegmentMapping> mapping_;
};

}  // namespace longwire::daemon
