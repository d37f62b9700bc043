// Memory of a device that is kept for a session although it has not leased it: what its program
// declared (longwire run --memory). The daemon names the bytes in StartWorker; the warden asks the
// keepers of the worker's devices and answers the daemon when all have:
//   Assign with `promised` -> Promised
// A keeper that keeps a promise subtracts what is unused of it from what others may have, until the
// worker has ended; its successor knows it from the table of loans and from Attach. From version 14
// on; older ones keep nothing, and are not asked to.
#pragma once

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "server/protocol/message.h"

namespace longwire::keeper {

inline constexpr uint32_t kPromisesSince = 14;  // version of the protocol

// Keeper to warden.
struct Promised {
  static constexpr uint32_t kKind = 207;
  uint64_t worker = 0;
  int32_t code = 0;      // a CUresult; not 0: nothing is kept for the worker
  std::string sentence;  // for people
  auto Fields() { return std::tie(worker, code, sentence); }
};

}  // namespace longwire::keeper

namespace longwire::warden {

// A part of Stats.
struct SessionPromise {
  uint64_t session = 0;
  int32_t device = 0;
  uint64_t bytes = 0;
  auto Fields() { return std::tie(session, device, bytes); }
};
struct AllPromises {
  std::vector<SessionPromise> sessions;
  auto Fields() { return std::tie(sessions); }
};

}  // namespace longwire::warden
