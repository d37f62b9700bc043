// Percentiles of what the daemon has timed, over the last minute, the last hour, and since it
// began. No thread.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "proto/transport.pb.h"

namespace longwire::web {

struct Percentiles {
  uint64_t count = 0;
  // Seconds, interpolated within a bucket of the daemon's; nullopt: there were none. Beyond the
  // last bound is the last bound, and `beyond` says so.
  std::optional<double> p50, p95, p99;
  bool beyond = false;  // p99 lies beyond the last bound
};

struct LatencyRow {
  std::string name;
  Percentiles minute, hour, all;
};

class Latencies {
 public:
  // `same_daemon`: its counters go on from those of the last reply.
  void Add(int64_t second, const transport::InspectReply& now, bool same_daemon);
  std::vector<LatencyRow> Rows() const;

 private:
  struct Counts {
    int64_t second = 0;
    std::vector<std::vector<uint64_t>> counts;  // as in latest_
  };
  const Counts* Before(int64_t second) const;

  std::vector<transport::Latency> latest_;
  std::deque<Counts> earlier_;  // every few seconds of the last hour
};

// For tests, too.
Percentiles PercentilesOf(const std::vector<double>& bounds, const std::vector<uint64_t>& counts);

}  // namespace longwire::web
