// Logs failed TLS handshakes: the peer's address and the reason. gRPC reports to a server only
// connections whose handshake succeeded.
#pragma once

#include <string>

namespace longwire::daemon {

// Call once, before the first connection. From then on every TLS handshake that gRPC begins on a
// thread with a HandshakeFrom is observed.
void WatchHandshakes();

// While it lives, handshakes that begin on this thread come from `address`.
class HandshakeFrom {
 public:
  explicit HandshakeFrom(const std::string& address);
  ~HandshakeFrom();
  HandshakeFrom(const HandshakeFrom&) = delete;
  HandshakeFrom& operator=(const HandshakeFrom&) = delete;
};

}  // namespace longwire::daemon
