// Tells the log which connections failed at TLS, from where, and why. gRPC keeps that to itself: it
// shows a server only what came through.
#pragma once

#include <string>

namespace longwire::daemon {

// Call once, before the first connection: from then on every TLS handshake that gRPC begins on a
// thread inside a HandshakeFrom is watched.
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
