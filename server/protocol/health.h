// What NVIDIA's management library says of a device, from keeper to warden to daemon. Whole numbers
// in the library's units; what it does not know is not in `known`.
#pragma once

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

namespace longwire::keeper {

// Bits of `known`.
enum class HealthFigure : uint32_t {
  kPower,              // milliwatts
  kPowerLimit,         // milliwatts
  kTemperature,        // degrees Celsius
  kSmClock,            // MHz
  kMemoryClock,        // MHz
  kGpuUtilization,     // percent
  kMemoryUtilization,  // percent
  kThrottleReasons,    // the library's bits
  kEccCorrected,       // since the driver was loaded
  kEccUncorrected,
  kXids,     // errors since the keeper began
  kLastXid,  // its number; 0: none
};
inline constexpr size_t kHealthFigures = 12;

struct DeviceHealth {
  uint32_t known = 0;
  std::vector<uint64_t> values;  // kHealthFigures of them
  auto Fields() { return std::tie(known, values); }

  bool Has(HealthFigure figure) const {
    auto place = static_cast<uint32_t>(figure);
    return (known >> place & 1) != 0 && place < values.size();
  }
  uint64_t Value(HealthFigure figure) const { return values[static_cast<size_t>(figure)]; }
  void Set(HealthFigure figure, uint64_t value) {
    auto place = static_cast<uint32_t>(figure);
    values.resize(kHealthFigures);
    values[place] = value;
    known |= uint32_t{1} << place;
  }
  bool operator==(const DeviceHealth&) const = default;
};

}  // namespace longwire::keeper
