// The operator's policies (docs/policies.md) outside of the daemon. That for memory goes from the
// daemon to the warden and on to each keeper, also to those that start later; all run it on the
// same maps (policy/store.h). That for launches stays in the daemon, which workers ask
// (server/rules/launches.h).
//
//   SetPolicy  daemon to warden, with the descriptors of UsePolicy -> no answer
//   UsePolicy  warden to keeper -> no answer
//   Placed     warden to keeper: whose session the worker has -> no answer
//
// Wardens from kPoliciesSince on know SetPolicy. Keepers ignore what they do not know.
#pragma once

#include <cstdint>
#include <string>
#include <tuple>

#include "server/protocol/message.h"

namespace longwire::keeper {

// With two descriptors if `number` is not 0: the object in sealed memory, and the policy's store.
struct UsePolicy {
  static constexpr uint32_t kKind = 207;
  uint64_t number = 0;  // of this loading of it; 0: there is no policy
  std::string name;
  uint64_t bytes = 0;  // of the object
  // What the keeper writes into the store once it can run it; the warden sets it.
  uint64_t taker = 0;
  auto Fields() { return std::tie(number, name, bytes, taker); }
};
enum : size_t { kPolicyObject, kPolicyStore, kPolicyDescriptors };  // their order

// Sent behind Assign, and behind the Attach of a worker that a predecessor had.
struct Placed {
  static constexpr uint32_t kKind = 208;
  uint64_t worker = 0;
  uint64_t session = 0;
  uint64_t tenant = 0;  // the number of its name, as policies know it
  auto Fields() { return std::tie(worker, session, tenant); }
};

}  // namespace longwire::keeper

namespace longwire::warden {

inline constexpr uint32_t kPoliciesSince = 14;  // version of the protocol

struct SetPolicy {
  static constexpr uint32_t kKind = 17;
  keeper::UsePolicy policy;
  auto Fields() { return std::tie(policy); }
};

}  // namespace longwire::warden
