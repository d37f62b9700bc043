// Serves metrics over TLS, to who may read them. One thread, which no client can stop.
#pragma once

#include <atomic>
#include <functional>
#include <list>
#include <string>
#include <thread>
#include <vector>

#include "link/certificates/address.h"
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
  explicit SecureEndpoint(Uses uses) : uses_(std::move(uses)) {}
  ~SecureEndpoint() { Stop(); }

  // Answers https://ADDRESS/metrics. False with a sentence.
  bool Start(const std::string& address, std::string* sentence);
  void Stop();

 private:
  using Clock = HttpsConnection::Clock;
  void Loop();
  void RunOnce();
  void Accept(int listener);
  // Made anew when other files are in force; open connections hold on to theirs.
  SSL_CTX* Context();
  HttpAnswer Answer(const std::string& path, const std::string& chain,
                    const std::string& address) const;

  const Uses uses_;
  std::vector<wire::Descriptor> listeners_;
  wire::Descriptor wake_;
  std::string of_;  // the material of context_
  HttpsContext context_;
  std::list<HttpsConnection> connections_;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace longwire::daemon
