// How long what a session's program waits for took: the worker counts in the session's page of
// gates (gate_page.h), the daemon sums up.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace longwire::gates {

enum class Latency : uint32_t {
  kRoundTrip,  // of a call whose answer the program waits for, as the program's host measures it
  kQueueing,   // of a launch: from the log to the driver
  kLaunchToStart,  // of a launch: from the log to its beginning on the device
};
inline constexpr size_t kLatencies = 3;

// Upper bounds of what is counted together, nanoseconds.
inline constexpr std::array<uint64_t, 14> kLatencyBounds = {
    10'000,    25'000,     50'000,     100'000,    250'000,     500'000,       1'000'000,
    2'500'000, 10'000'000, 25'000'000, 50'000'000, 100'000'000, 1'000'000'000, 10'000'000'000};

struct LatencyCounts {
  std::array<uint64_t, kLatencyBounds.size() + 1> counts{};  // up to each bound, and beyond all
  uint64_t nanoseconds = 0;                                  // of all together

  void Add(const LatencyCounts& other) {
    for (size_t i = 0; i < counts.size(); ++i) counts[i] += other.counts[i];
    nanoseconds += other.nanoseconds;
  }
  // What was counted before somebody began to sum up.
  void Subtract(const LatencyCounts& other) {
    for (size_t i = 0; i < counts.size(); ++i) counts[i] -= other.counts[i];
    nanoseconds -= other.nanoseconds;
  }
};

using AllLatencies = std::array<LatencyCounts, kLatencies>;

// Which of the counts a latency belongs to.
inline size_t LatencyBucket(uint64_t nanoseconds) {
  const auto* bound = std::ranges::lower_bound(kLatencyBounds, nanoseconds);
  return static_cast<size_t>(bound - kLatencyBounds.begin());
}

}  // namespace longwire::gates
