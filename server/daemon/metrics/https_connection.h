// One client of the metrics over TLS: one request of HTTP, one answer.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "link/certificates/tls_exchange.h"

namespace longwire::daemon {

struct HttpAnswer {
  const char* status = "200 OK";
  std::string text;
};

class HttpsConnection : public certificates::TlsExchange {
 public:
  // The answer to a request for a path, of who showed the chain (PEM, its own certificate first).
  using Handle = std::function<HttpAnswer(const std::string& path, const std::string& chain)>;

  HttpsConnection(wire::Descriptor socket, SSL_CTX* context, Clock::time_point deadline,
                  Handle handle);

 private:
  std::optional<std::string> Take(std::span<const std::byte> bytes) override;
  HttpAnswer AnswerToRequest() const;

  const Handle handle_;
  std::string request_;
};

}  // namespace longwire::daemon
