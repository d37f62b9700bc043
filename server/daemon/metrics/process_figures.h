// The daemon's own process, as Prometheus' client libraries show theirs.
#pragma once

#include <cstdint>
#include <optional>

namespace longwire::daemon {

// What the system does not say is missing.
struct ProcessFigures {
  std::optional<double> start_time;  // seconds since 1970
  std::optional<double> cpu_seconds;
  std::optional<uint64_t> virtual_bytes, resident_bytes;
  std::optional<uint64_t> open_descriptors, most_descriptors;
};

ProcessFigures ReadProcess();

}  // namespace longwire::daemon
