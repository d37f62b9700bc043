// The Admin call: what it does, and who may use it.
#pragma once

#include <functional>
#include <string>

#include "proto/transport.pb.h"
#include "server/daemon/peer.h"
#include "server/daemon/reload.h"

namespace longwire::daemon {

// True if the peer may administer the daemon; false with a sentence. Allowed are: the daemon's own
// user and root at a socket of this host; peers whose tenant has admin: true; and, if there are no
// tenants, connections without TLS from this host. Thread-safe.
bool MayAdminister(const Peer& peer, std::string* sentence);

class Admin {
 public:
  // `who`: the requester, for the log.
  using Reload = std::function<Reloader::Outcome(const std::string& who)>;

  explicit Admin(Reload reload) : reload_(std::move(reload)) {}

  // Executes the peer's request, or refuses it with a sentence. Thread-safe.
  transport::AdminReply Handle(const Peer& peer, const transport::AdminRequest& request);

 private:
  const Reload reload_;
};

}  // namespace longwire::daemon
