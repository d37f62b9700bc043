// What a daemon leaves with the warden for the daemon after it (docs/decisions/0057): a record and
// descriptors for each session, which the warden keeps as long as the session's worker lives, and
// never reads.
//
//   KeepSession -> no answer; replaces what was kept for the session. With any descriptors
//   SetGrace    -> no answer; how long workers without a daemon live from now on
//   TakeSession -> SessionTaken      the next session, one at a time, whoever had it before; first
//                                    those whose workers ended while there was no daemon
#pragma once

#include <cstdint>
#include <string>
#include <tuple>

#include "server/protocol/warden.h"
#include "wire/socket.h"

namespace longwire::warden {

inline constexpr uint32_t kKeepsSince = 14;  // version of the protocol
// With its worker's they fit into one message.
inline constexpr size_t kMaxKeptDescriptors = wire::kMaxMessageDescriptors - kWorkerDescriptors;

struct KeepSession {
  static constexpr uint32_t kKind = 13;
  uint64_t session = 0;
  std::string record;
  auto Fields() { return std::tie(session, record); }
};

struct SetGrace {
  static constexpr uint32_t kKind = 14;
  uint64_t milliseconds = 0;
  auto Fields() { return std::tie(milliseconds); }
};

struct TakeSession {
  static constexpr uint32_t kKind = 15;
  uint64_t request = 0;
  uint64_t after = 0;  // sessions of higher numbers are left
  auto Fields() { return std::tie(request, after); }
};

// Carries the descriptors of WorkerStarted, then those that were kept. With a code in `worker` it
// carries none: that session has ended, and the sentence says how.
struct SessionTaken {
  static constexpr uint32_t kKind = 16;
  uint64_t request = 0;
  WorkerStarted worker;  // of session 0: there is none left
  std::string record;    // empty: none was kept
  auto Fields() { return std::tie(request, worker, record); }
};

}  // namespace longwire::warden
