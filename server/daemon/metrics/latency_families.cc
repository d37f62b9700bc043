// How long what programs wait for took, by tenant; and kernels whose time has changed.
#include <array>
#include <limits>

#include "server/daemon/metrics/scrape.h"

namespace longwire::daemon {
namespace {

struct LatencyFamily {
  const char* of;
  const char* name;
  const char* help;
};
constexpr std::array kLatencyFamilies = {
    LatencyFamily{"round_trip", "longwire_round_trip_seconds",
                  "How long calls took whose answer a program waited for, as its own host measured "
                  "it; of one such call in 16 of a session."},
    LatencyFamily{"launch_queueing", "longwire_launch_queueing_seconds",
                  "How long kernel launches waited at the server before the driver got them, for "
                  "earlier work and for a turn; of one launch in 256 of a session."},
    LatencyFamily{"launch_to_start", "longwire_launch_to_start_seconds",
                  "How long it took from a kernel launch's arrival at the server to its beginning "
                  "on the device, as the device measured it; of one launch in 256 of a session."}};

prometheus::ClientMetric::Histogram HistogramOf(const transport::Latency& latency) {
  prometheus::ClientMetric::Histogram histogram;
  histogram.sample_sum = latency.seconds();
  for (int i = 0; i < latency.counts_size(); ++i) {
    histogram.sample_count += latency.counts(i);
    const bool beyond = i == latency.bounds_size();
    histogram.bucket.push_back(
        {histogram.sample_count,
         beyond ? std::numeric_limits<double>::infinity() : latency.bounds(i)});
  }
  return histogram;
}

}  // namespace

void AddLatencies(const Scrape& scrape, Families* families) {
  for (const LatencyFamily& described : kLatencyFamilies) {
    Family& family = families->Histogram(described.name, described.help);
    for (const transport::TenantFigures& tenant : scrape.figures.tenants()) {
      for (const transport::Latency& latency : tenant.latencies()) {
        if (latency.of() != described.of) continue;
        family.AddHistogram({{"tenant", tenant.name()}}, HistogramOf(latency));
      }
    }
  }
}

void AddDrifts(const Scrape& scrape, Families* families) {
  Family& family = families->Gauge(
      "longwire_kernel_time_drift_ratio",
      "Of kernels whose median time today is 1.3 times what it was on earlier days, or less than "
      "that the other way: by how much. Of the 64 that changed most.");
  for (const DriftedKernel& one : scrape.drifts) {
    family.Add({{"tenant", one.tenant}, {"program", one.program}, {"kernel", one.kernel}},
               one.ratio);
  }
}

}  // namespace longwire::daemon
