// Placement by the scores of a policy's hook `place`.
#pragma once

#include <span>

#include "policy/program.h"
#include "scheduler/placement/placement.h"

namespace longwire::policy {

// Of the devices with room those with the highest scores; among equal ones `built_in` chooses. It
// refuses, too.
scheduler::PlacementAnswer PlaceByScore(std::span<const scheduler::DeviceLoad> devices,
                                        const scheduler::PlacementRequest& request,
                                        const scheduler::Placement& built_in, Program& program);

}  // namespace longwire::policy
