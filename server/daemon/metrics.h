// The figures of `longwire status`, as an administrator sees them, as Prometheus metrics.
#pragma once

#include <prometheus/collectable.h>
#include <prometheus/exposer.h>

#include <functional>
#include <memory>
#include <string>

#include "proto/transport.pb.h"

namespace longwire::daemon {

std::vector<prometheus::MetricFamily> MetricsOf(const transport::InspectReply& reply);

class MetricsEndpoint {
 public:
  // `inspect` is called for each scrape, on the endpoint's own threads.
  explicit MetricsEndpoint(std::function<transport::InspectReply()> inspect);
  ~MetricsEndpoint();

  // Answers http://ADDRESS/metrics. False with a sentence.
  bool Start(const std::string& address, std::string* sentence);

 private:
  class Source;
  std::shared_ptr<Source> source_;
  std::unique_ptr<prometheus::Exposer> exposer_;
};

}  // namespace longwire::daemon
