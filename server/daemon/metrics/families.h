// Families of metrics while a scrape is put together. All counters begin anew with the daemon,
// unless their help says otherwise.
#pragma once

#include <prometheus/metric_family.h>

#include <deque>
#include <string>
#include <vector>

namespace longwire::daemon {

using Labels = std::vector<prometheus::ClientMetric::Label>;

// One metric with all its label sets.
class Family {
 public:
  Family(const char* name, const char* help, prometheus::MetricType type)
      : family_{name, help, type, {}} {}

  template <class Number>
  void Add(Labels labels, Number value) {
    prometheus::ClientMetric& metric = family_.metric.emplace_back();
    metric.label = std::move(labels);
    metric.counter.value = static_cast<double>(value);
    metric.gauge.value = static_cast<double>(value);
  }
  void AddHistogram(Labels labels, prometheus::ClientMetric::Histogram histogram) {
    prometheus::ClientMetric& metric = family_.metric.emplace_back();
    metric.label = std::move(labels);
    metric.histogram = std::move(histogram);
  }
  bool empty() const { return family_.metric.empty(); }
  prometheus::MetricFamily Take() { return std::move(family_); }

 private:
  prometheus::MetricFamily family_;
};

class Families {
 public:
  Family& Gauge(const char* name, const char* help) {
    return families_.emplace_back(name, help, prometheus::MetricType::Gauge);
  }
  Family& Counter(const char* name, const char* help) {
    return families_.emplace_back(name, help, prometheus::MetricType::Counter);
  }
  Family& Histogram(const char* name, const char* help) {
    return families_.emplace_back(name, help, prometheus::MetricType::Histogram);
  }
  std::vector<prometheus::MetricFamily> Take() {
    std::vector<prometheus::MetricFamily> taken;
    taken.reserve(families_.size());
    for (Family& family : families_) {
      if (!family.empty()) taken.push_back(family.Take());
    }
    return taken;
  }

 private:
  std::deque<Family> families_;  // references stay valid
};

}  // namespace longwire::daemon
