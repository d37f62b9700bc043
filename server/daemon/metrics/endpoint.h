// Serves metrics over HTTP.
#pragma once

#include <prometheus/metric_family.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

class CivetServer;

namespace longwire::daemon {

// As Prometheus reads it.
std::string TextOf(const std::vector<prometheus::MetricFamily>& families);

class MetricsEndpoint {
 public:
  using Collect = std::function<std::vector<prometheus::MetricFamily>()>;
  // `collect` is called for each scrape, on the endpoint's own threads.
  explicit MetricsEndpoint(Collect collect);
  ~MetricsEndpoint();

  // Answers http://ADDRESS/metrics. False with a sentence.
  bool Start(const std::string& address, std::string* sentence);

 private:
  class Handler;
  std::unique_ptr<Handler> handler_;
  std::unique_ptr<CivetServer> server_;  // ends before its handler
};

}  // namespace longwire::daemon
