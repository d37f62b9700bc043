// Which sessions of a server go to other devices of it, so that one gets in that fits nowhere.
// Nothing is moved here: this says what would do, with the fewest bytes moved.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "scheduler/placement/placement.h"
#include "scheduler/types.h"

namespace longwire::scheduler {

// A session that was moved stays where it is for so long.
inline constexpr std::chrono::seconds kRestAfterMove{60};

// A session on one device. Those on several do not move, and are not named here.
struct Occupant {
  uint64_t session = 0;
  DeviceId device = 0;
  uint64_t bytes = 0;  // of device memory: what a move copies
  uint64_t room = 0;   // what it takes from a device
  bool best_effort = true;
  bool stays = false;                         // it cannot move
  std::optional<std::chrono::seconds> moved;  // so long ago; none: never
};

struct SessionMove {
  uint64_t session = 0;
  DeviceId to = 0;
};

struct RebalancePlan {
  std::vector<DeviceId> devices;   // for the one that asks; none: there is no plan
  std::vector<SessionMove> moves;  // in any order
};

// `devices` with what is free beside the occupants. A session is moved once, to a device that has
// room for it as it is: there are no chains. Of plans that move as many bytes, the one with the
// fewest sessions. The search has a limit; beyond it the best plan found so far counts.
RebalancePlan PlanRebalance(std::span<const DeviceLoad> devices,
                            std::span<const Occupant> occupants, const PlacementRequest& request);

}  // namespace longwire::scheduler
