// What an administrator may ask a running daemon for, and who is one.
#pragma once

#include <functional>
#include <string>

#include "proto/transport.pb.h"
#include "server/daemon/peer.h"
#include "server/daemon/reload.h"

namespace longwire::daemon {

// Whether the peer may administer the daemon; false with a sentence. These may: at a socket of this
// host the daemon's own user and root, a peer whose tenant has admin: true, and, as long as there
// are no tenants, a connection without TLS from this host. Thread-safe.
bool MayAdminister(const Peer& peer, std::string* sentence);

class Admin {
 public:
  // `who` asked for it.
  using Reload = std::function<Reloader::Outcome(const std::string& who)>;

  explicit Admin(Reload reload) : reload_(std::move(reload)) {}

  // Does what the peer asks for, or says why not. Thread-safe.
  transport::AdminReply Handle(const Peer& peer, const transport::AdminRequest& request);

 private:
  const Reload reload_;
};

}  // namespace longwire::daemon
