// The placement policies: each is one comparison.
#include <tuple>

#include "scheduler/placement/placement.h"

namespace longwire::scheduler {

namespace {

// Fills one device before it begins the next, so that large sessions later find whole ones.
class Pack : public Placement {
  bool IsBefore(const DeviceLoad& one, const DeviceLoad& other) const override {
    // Fewest free bytes first, and of equal ones that with most sessions.
    return std::tie(one.free_bytes, other.sessions) < std::tie(other.free_bytes, one.sessions);
  }
};

// Gives each session as few neighbours as possible.
class Spread : public Placement {
  bool IsBefore(const DeviceLoad& one, const DeviceLoad& other) const override {
    return std::tie(one.sessions, other.free_bytes) < std::tie(other.sessions, one.free_bytes);
  }
};

// Goes where the least has been computed lately. Devices that differ by less than a twentieth
// count as equal: such differences are gone before the session has begun.
class LeastLoaded : public Placement {
  bool IsBefore(const DeviceLoad& one, const DeviceLoad& other) const override {
    const auto steps = [](const DeviceLoad& device) { return static_cast<int>(device.busy * 20); };
    return std::tuple(steps(one), one.sessions, other.free_bytes) <
           std::tuple(steps(other), other.sessions, one.free_bytes);
  }
};

}  // namespace

std::unique_ptr<Placement> MakePlacement(std::string_view name) {
  if (name == "pack") return std::make_unique<Pack>();
  if (name == "spread") return std::make_unique<Spread>();
  if (name == "least_loaded") return std::make_unique<LeastLoaded>();
  return nullptr;
}

}  // namespace longwire::scheduler
