// The signer's sockets: TLS for clients, a unix socket for those who invite. One thread, which no
// peer can stop: clients never block it, and administrators are trusted not to.
#pragma once

#include <string>
#include <vector>

#include "link/certificates/address.h"
#include "link/certificates/tls_acceptor.h"
#include "server/signer/connection.h"
#include "server/signer/signer.h"
#include "wire/socket.h"

namespace longwire::signer {

class Service {
 public:
  // `group`: whose members may invite beside root and this process's user; empty: nobody.
  Service(Signer& signer, certificates::Issued authority, std::string group)
      : signer_(signer),
        authority_(std::move(authority)),
        group_(std::move(group)),
        acceptor_(kLimits,
                  [this](wire::Descriptor socket, const transport::Address&,
                         const std::string& host) { return Meet(std::move(socket), host); }) {}

  // False with a sentence.
  bool Open(const std::vector<transport::Address>& addresses, const std::string& socket,
            std::string* sentence);
  uint16_t port() const { return port_; }

  // Waits for what comes next and serves it; for ever in a loop.
  void RunOnce();

 private:
  using Clock = Connection::Clock;
  static constexpr certificates::TlsAcceptor::Limits kLimits{64, 8};
  bool Listen(const transport::Address& address, std::string* sentence);
  bool RenewContext(std::string* sentence);
  std::unique_ptr<certificates::TlsExchange> Meet(wire::Descriptor socket, const std::string& host);
  void ServeAdministrator();
  bool MayInvite(int socket) const;

  Signer& signer_;
  const certificates::Issued authority_;
  const std::string group_;
  wire::Descriptor local_;
  uint16_t port_ = 0;
  certificates::TlsContext context_;
  Clock::time_point context_until_{};
  certificates::TlsAcceptor acceptor_;
};

}  // namespace longwire::signer
