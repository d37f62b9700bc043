// On which devices a new session goes. Devices where it does not fit are out; the policy orders the
// others, and the first ones are taken.
//
// To write another policy: derive, answer IsBefore, name it in MakePlacement, add it to
// testdata/placement.txt.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "scheduler/types.h"

namespace longwire::scheduler {

struct DeviceLoad {
  DeviceId id = 0;
  uint64_t total_bytes = 0;
  uint64_t free_bytes = 0;  // not yet lent or promised
  uint32_t sessions = 0;
  double busy = 0;  // DeviceStatus::busy
};

struct PlacementRequest {
  uint32_t devices = 1;  // at least one
  uint64_t bytes = 0;    // on each, as far as the session knows; 0: it does not
};

struct PlacementAnswer {
  std::vector<DeviceId> devices;  // in the session's order; empty when refused
  std::string refusal;            // a sentence for the session's user; empty when placed
};

class Placement {
 public:
  virtual ~Placement() = default;
  PlacementAnswer Place(std::span<const DeviceLoad> devices, const PlacementRequest& request) const;

 private:
  // Whether `one` is the better place. Where neither is, the lower id is.
  virtual bool IsBefore(const DeviceLoad& one, const DeviceLoad& other) const = 0;
};

// By name: "pack", "spread", "least_loaded"; null for any other.
std::unique_ptr<Placement> MakePlacement(std::string_view name);

}  // namespace longwire::scheduler
