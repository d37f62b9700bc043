#include "web/latencies.h"

#include <algorithm>
#include <numeric>

namespace longwire::web {
namespace {

constexpr int64_t kApart = 10;  // seconds between what is kept
constexpr int64_t kHour = 3600;
constexpr int kMaxLatencies = 32;
constexpr int kMaxBuckets = 64;

std::vector<uint64_t> CountsOf(const transport::Latency& latency) {
  return {latency.counts().begin(), latency.counts().end()};
}

}  // namespace

Percentiles PercentilesOf(const std::vector<double>& bounds, const std::vector<uint64_t>& counts) {
  Percentiles result;
  result.count = std::accumulate(counts.begin(), counts.end(), uint64_t{0});
  if (result.count == 0 || bounds.empty()) return result;
  auto at = [&](double part) -> double {
    const double rank = part * static_cast<double>(result.count);
    double below = 0;
    for (size_t i = 0; i < bounds.size() && i < counts.size(); ++i) {
      const double here = static_cast<double>(counts[i]);
      if (here > 0 && below + here >= rank) {
        const double from = i == 0 ? 0 : bounds[i - 1];
        return from + (bounds[i] - from) * (rank - below) / here;
      }
      below += here;
    }
    return bounds.back();
  };
  result.p50 = at(0.5);
  result.p95 = at(0.95);
  result.p99 = at(0.99);
  const double beyond = counts.size() > bounds.size() ? static_cast<double>(counts.back()) : 0;
  result.beyond = beyond > 0.01 * static_cast<double>(result.count);
  return result;
}

void Latencies::Add(int64_t second, const transport::InspectReply& now, bool same_daemon) {
  std::vector<transport::Latency> latest;
  auto take = [&](transport::Latency latency, const std::string& whose) {
    const bool good =
        latency.bounds_size() <= kMaxBuckets && latency.counts_size() == latency.bounds_size() + 1;
    std::string of = latency.of();
    std::ranges::replace(of, '_', ' ');
    latency.set_of(whose + of);
    if (good && latest.size() < kMaxLatencies) latest.push_back(std::move(latency));
  };
  for (const transport::Latency& latency : now.latencies()) take(latency, "");
  for (const transport::TenantFigures& tenant : now.tenants()) {
    for (const transport::Latency& latency : tenant.latencies())
      take(latency, tenant.name() + ": ");
  }
  bool comparable = same_daemon && latest.size() == latest_.size();
  for (size_t i = 0; comparable && i < latest.size(); ++i) {
    comparable =
        latest[i].of() == latest_[i].of() && latest[i].counts_size() == latest_[i].counts_size();
  }
  if (!comparable) earlier_.clear();
  latest_ = std::move(latest);
  if (!earlier_.empty() && second < earlier_.back().second + kApart) return;
  Counts counts;
  counts.second = second;
  for (const transport::Latency& latency : latest_) counts.counts.push_back(CountsOf(latency));
  earlier_.push_back(std::move(counts));
  while (earlier_.front().second < second - kHour) earlier_.pop_front();
}

// The newest that is at least so old; else the oldest.
const Latencies::Counts* Latencies::Before(int64_t second) const {
  const Counts* found = earlier_.empty() ? nullptr : &earlier_.front();
  for (const Counts& one : earlier_) {
    if (one.second <= second) found = &one;
  }
  return found;
}

std::vector<LatencyRow> Latencies::Rows() const {
  std::vector<LatencyRow> rows;
  const int64_t now = earlier_.empty() ? 0 : earlier_.back().second;
  for (size_t i = 0; i < latest_.size(); ++i) {
    const std::vector<double> bounds(latest_[i].bounds().begin(), latest_[i].bounds().end());
    const std::vector<uint64_t> counts = CountsOf(latest_[i]);
    auto since = [&](const Counts* then) {
      std::vector<uint64_t> difference = counts;
      for (size_t k = 0; then != nullptr && k < difference.size(); ++k) {
        difference[k] -= std::min(difference[k], then->counts[i][k]);
      }
      return PercentilesOf(bounds, difference);
    };
    rows.push_back({latest_[i].of(), since(Before(now - 60)), since(Before(now - kHour)),
                    PercentilesOf(bounds, counts)});
  }
  return rows;
}

}  // namespace longwire::web
