// Who is at the other end of a call.
#pragma once

#include <grpcpp/server_context.h>
#include <sys/types.h>

#include <ctime>
#include <memory>
#include <optional>
#include <string>

#include "link/transport/log.h"
#include "server/daemon/settings/tenants.h"

namespace longwire::daemon {

// By what a peer showed who it is.
struct Proof {
  std::string certificates;  // the chain in PEM, its own first; empty without TLS
  std::time_t expires = 0;   // the last second of its own; 0: none, so never
};

struct Peer {
  std::string address;   // "192.0.2.7:51234"; "uid 1000" at the local socket
  std::string identity;  // see tenants.h; empty when the peer has none
  std::shared_ptr<const config::Tenant> tenant;  // nullptr: refused, for `refusal`
  std::optional<uid_t> uid;                      // at the local socket
  std::string refusal;                           // a sentence
  Proof proof;

  bool refused() const { return tenant == nullptr; }
  // For a log line about the peer or its session.
  transport::LogSubject subject(uint64_t session = 0) const {
    return {session, refused() ? std::string_view() : tenant->name(), address};
  }
  bool SeesAll() const { return tenant->admin() || tenant->monitor(); }
  bool MaySee(const config::Tenant& other) const {
    return SeesAll() || tenant->name() == other.name();
  }
};

// The caller of an RPC. Determined for each call: certificates expire and tenants change while a
// connection lasts.
Peer PeerOf(const grpc::ServerContext& context, const config::LiveConfig::Snapshot& config);
// The holder of a certificate chain (PEM, its own first), whose key the caller has seen used.
Peer HolderOf(const std::string& chain, const std::string& address,
              const config::LiveConfig::Snapshot& config);
// The caller's certificate chain in PEM, its own certificate first; empty without TLS.
std::string CertificatesOf(const grpc::ServerContext& context);
// A program at the local socket.
Peer LocalPeer(uid_t uid, const config::LiveConfig::Snapshot& config);

}  // namespace longwire::daemon
