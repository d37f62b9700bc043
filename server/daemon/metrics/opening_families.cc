// Sessions as they come: how many, how long that took, which were refused and why.
#include <limits>

#include "server/daemon/metrics/scrape.h"

namespace longwire::daemon {
prometheus::ClientMetric::Histogram HistogramOf(const OpeningTimes::Figures& figures) {
  prometheus::ClientMetric::Histogram histogram;
  histogram.sample_sum = figures.seconds;
  for (size_t i = 0; i < figures.counts.size(); ++i) {
    histogram.sample_count += figures.counts[i];
    const bool beyond = i == OpeningTimes::kBounds.size();
    histogram.bucket.push_back(
        {histogram.sample_count,
         beyond ? std::numeric_limits<double>::infinity() : OpeningTimes::kBounds[i]});
  }
  return histogram;
}

namespace {

// Of every tenant and reason, so that the first refusal is seen as an increase.
void AddRefusals(const Scrape& scrape, Family& family) {
  std::map<std::string, RefusalCounts> all = scrape.refusals;
  all[""];
  for (const transport::TenantFigures& tenant : scrape.figures.tenants()) all[tenant.name()];
  for (const auto& [tenant, counts] : all) {
    for (size_t reason = 0; reason < counts.size(); ++reason) {
      family.Add({{"tenant", tenant}, {"reason", kRefusalReasons[reason]}}, counts[reason]);
    }
  }
}

}  // namespace

void AddOpenings(const Scrape& scrape, Families* families) {
  families->Gauge("longwire_sessions", "Sessions that are open.")
      .Add({}, scrape.figures.sessions_size());
  families->Gauge("longwire_sessions_limit", "How many sessions may be open (max_sessions).")
      .Add({}, scrape.sessions_limit);
  families->Counter("longwire_sessions_opened_total", "Sessions that were opened.")
      .Add({}, scrape.figures.daemon().sessions_opened());
  AddRefusals(scrape,
              families->Counter("longwire_sessions_refused_total",
                                "Sessions that were refused, by tenant (empty: of those who belong "
                                "to none) and reason."));
  families
      ->Histogram("longwire_session_opening_seconds",
                  "How long the sessions that were opened took to open, from the request's arrival "
                  "to the answer.")
      .AddHistogram({}, HistogramOf(scrape.openings));
}

}  // namespace longwire::daemon
