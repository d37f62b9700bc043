#include "scheduler/placement/placement.h"

#include <algorithm>
#include <cstdio>

namespace longwire::scheduler {

namespace {

constexpr double kGiB = 1 << 30;

std::string Count(size_t count, const char* noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

std::string GiB(uint64_t bytes) {
  char text[40];
  std::snprintf(text, sizeof text, "%.1f GiB", static_cast<double>(bytes) / kGiB);
  return text;
}

std::string SayTooFew(std::span<const DeviceLoad> devices, const PlacementRequest& request,
                      size_t fitting) {
  const auto roomiest =
      std::max_element(devices.begin(), devices.end(),
                       [](const auto& a, const auto& b) { return a.free_bytes < b.free_bytes; });
  std::string fit = fitting == 0 ? "no device has" : "only " + Count(fitting, "device");
  if (fitting != 0) fit += fitting == 1 ? " has" : " have";
  return "The session asks for " + Count(request.devices, "device") + " with " +
         GiB(request.bytes) + " of free memory each, and " + fit + " that much; the most is " +
         GiB(roomiest->free_bytes) + ", on device " + std::to_string(roomiest->id) +
         ". Ask for less, or try again when another session has ended.";
}

}  // namespace

PlacementAnswer Placement::Place(std::span<const DeviceLoad> devices,
                                 const PlacementRequest& request) const {
  if (request.devices == 0) {
    return {{}, "The session asks for no device at all. Ask for at least one."};
  }
  if (request.devices > devices.size()) {
    return {{},
            "The session asks for " + Count(request.devices, "device") + " and the server has " +
                std::to_string(devices.size()) + ". Ask for no more than that."};
  }
  std::vector<DeviceLoad> fitting;
  for (const DeviceLoad& device : devices) {
    if (device.free_bytes >= request.bytes) fitting.push_back(device);
  }
  if (fitting.size() < request.devices) {
    return {{}, SayTooFew(devices, request, fitting.size())};
  }
  std::sort(fitting.begin(), fitting.end(), [this](const auto& one, const auto& other) {
    if (IsBefore(one, other)) return true;
    return !IsBefore(other, one) && one.id < other.id;
  });
  PlacementAnswer answer;
  for (uint32_t i = 0; i < request.devices; ++i) answer.devices.push_back(fitting[i].id);
  return answer;
}

}  // namespace longwire::scheduler
