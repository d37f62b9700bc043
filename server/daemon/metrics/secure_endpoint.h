// Serves metrics over TLS, to who may read them. One thread, which no client can stop.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <utility>

#include "link/certificates/tls_acceptor.h"
#include "link/transport/tls_files.h"
#include "server/daemon/metrics/https_connection.h"
#include "wire/descriptors.h"

namespace longwire::daemon {

class SecureEndpoint {
 public:
  struct Uses {
    // The server's certificate, key and authority that are in force.
    std::function<transport::TlsMaterial()> material;
    // Why who showed this chain (PEM) may not read metrics; empty if it may.
    std::function<std::string(const std::string& chain, const std::string& address)> refusal;
    std::function<std::string()> text;  // of the metrics
  };
  explicit SecureEndpoint(Uses uses);
  ~SecureEndpoint() { Stop(); }

  // Answers https://ADDRESS/metrics. False with a sentence.
  bool Start(const std::string& address, std::string* sentence);
  void Stop();

 private:
  void Loop();
  // Made anew when other files are in force; open connections hold on to theirs.
  SSL_CTX* Context();
  HttpAnswer Answer(const std::string& path, const std::string& chain,
                    const std::string& address) const;

  const Uses uses_;
  wire::Descriptor wake_;
  std::string of_;  // the material of context_
  certificates::TlsContext context_;
  certificates::TlsAcceptor acceptor_;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace longwire::daemon
