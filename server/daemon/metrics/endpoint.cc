#include "server/daemon/metrics/endpoint.h"

#include <CivetServer.h>
#include <prometheus/text_serializer.h>

#include <exception>

namespace longwire::daemon {

std::string TextOf(const std::vector<prometheus::MetricFamily>& families) {
  return prometheus::TextSerializer().Serialize(families);
}

// The library's own Exposer adds metrics about itself, exposer_*, which are nobody's concern here.
class MetricsEndpoint::Handler : public CivetHandler {
 public:
  explicit Handler(Collect collect) : collect_(std::move(collect)) {}

  bool handleGet(CivetServer* /*server*/, mg_connection* connection) override {
    const std::string text = TextOf(collect_());
    mg_printf(connection,
              "HTTP/1.1 200 OK\r\n"
              "Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n"
              "Content-Length: %zu\r\n"
              "Connection: close\r\n\r\n",
              text.size());
    mg_write(connection, text.data(), text.size());
    return true;
  }

 private:
  const Collect collect_;
};

MetricsEndpoint::MetricsEndpoint(Collect collect)
    : handler_(std::make_unique<Handler>(std::move(collect))) {}

MetricsEndpoint::~MetricsEndpoint() = default;

bool MetricsEndpoint::Start(const std::string& address, std::string* sentence) {
  // Two at once; one that is slow to ask does not keep a thread for longer than Prometheus waits.
  const std::vector<std::string> options = {"listening_ports",    address, "num_threads", "2",
                                            "request_timeout_ms", "5000"};
  // The library has no other way to say that it cannot listen.
  try {
    server_ = std::make_unique<CivetServer>(options);
  } catch (const std::exception& problem) {
    *sentence = "metrics cannot be served at " + address + ": " + problem.what();
    return false;
  }
  server_->addHandler("/metrics", *handler_);
  return true;
}

}  // namespace longwire::daemon
