// Accepts TLS connections and serves each its one answer, on the thread that calls it. No client
// can stop it: connections never wait, have a deadline, and are few for one host.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "link/certificates/address.h"
#include "link/certificates/tls_exchange.h"
#include "wire/descriptors.h"

namespace longwire::certificates {

class TlsAcceptor {
 public:
  struct Limits {
    size_t connections;  // more wait in the kernel
    size_t of_host;      // more are closed, so that one host cannot keep the others waiting
  };
  // For who comes from an address. `host` is what its limits count; of an IPv6 address the /64.
  using Make = std::function<std::unique_ptr<TlsExchange>(
      wire::Descriptor socket, const transport::Address& from, const std::string& host)>;

  TlsAcceptor(Limits limits, Make make) : limits_(limits), make_(std::move(make)) {}

  void Add(std::vector<wire::Descriptor> listeners);

  // Waits for what comes next and serves it. True if `other`, a descriptor of the caller's, is
  // ready.
  bool RunOnce(int other);
  void CloseAll() { open_.clear(); }

 private:
  struct Open {
    std::string host;
    std::unique_ptr<TlsExchange> exchange;
  };
  void Accept(int listener);

  const Limits limits_;
  const Make make_;
  std::vector<wire::Descriptor> listeners_;
  std::list<Open> open_;
};

}  // namespace longwire::certificates
