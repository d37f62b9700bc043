// The median time of each kernel on each day, kept in a small file: how a kernel's time drifts from
// day to day.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "server/statistics/figures.h"

namespace longwire::statistics {

// Of all days but today, and of today.
struct Drift {
  double earlier = 0;  // nanoseconds: the median of the earlier days' medians
  double today = 0;
  uint32_t days = 0;  // earlier ones
  double ratio() const { return earlier == 0 ? 1 : today / earlier; }
  // Neither chance nor a first day: enough days and launches are known.
  bool is_anomaly() const;
};

class History {
 public:
  static constexpr size_t kDays = 30;       // of one kernel
  static constexpr size_t kKernels = 4096;  // of all programs; who has not run the longest goes

  struct Key {
    std::string tenant;
    std::string program;
    KernelKey kernel;
    auto operator<=>(const Key&) const = default;
  };

  // `day`: since 1970. Replaces what was noted of that day, if that was of fewer launches.
  void Note(const Key& key, uint32_t day, double median, uint64_t launches);
  // None if nothing is known of that day, or of none before it.
  std::optional<Drift> DriftOf(const Key& key, uint32_t day) const;

  // All that are anomalies on that day, in the order of their keys.
  std::vector<std::pair<Key, Drift>> Anomalies(uint32_t day) const;

  std::string Text() const;
  // False with the number of the first line that cannot be understood; the others are taken.
  bool Parse(const std::string& text, size_t* line);

 private:
  struct Day {
    uint32_t day = 0;
    double median = 0;
    uint64_t launches = 0;
  };
  void MakeRoom();

  std::map<Key, std::deque<Day>> kernels_;  // days ascend
};

}  // namespace longwire::statistics
