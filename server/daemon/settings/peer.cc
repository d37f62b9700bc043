#include "server/daemon/settings/peer.h"

#include <grpc/grpc_security_constants.h>
#include <unistd.h>

#include <ctime>

#include "base/printable.h"
#include "link/certificates/address.h"
#include "link/certificates/certificate.h"
#include "wire/guards.h"
#include "wire/socket.h"

namespace longwire::daemon {
namespace {

// gRPC's "ipv4:192.0.2.7:51234" and "ipv6:%5B2001:db8::7%5D:51234" as people write them.
std::string PlainAddress(const std::string& peer) {
  std::string text = peer.substr(peer.find(':') + 1);
  for (const auto& [code, sign] : {std::pair{"%5B", "["}, {"%5D", "]"}, {"%25", "%"}}) {
    size_t at = text.find(code);
    if (at != std::string::npos) text.replace(at, 3, sign);
  }
  return text;
}

bool IsLocalName(const std::string& name) {
  return name == kLoopbackIdentity || name.starts_with(kUidPrefix);
}

// Fills the identity of a peer whose certificate the handshake has verified; false with a refusal.
bool TakeCertificate(std::string_view pem, Peer* peer) {
  transport::CertificatePointer parsed = transport::ParseCertificate(pem);
  if (parsed == nullptr) {
    peer->refusal = "the client's certificate cannot be read";
    return false;
  }
  transport::Certificate certificate = transport::Describe(parsed.get());
  std::time_t now = std::time(nullptr);
  const std::string& name = certificate.common_name;
  if (name.empty() || IsLocalName(name) || base::Printable(name) != name) {
    peer->refusal = "the client's certificate (serial " + certificate.serial +
                    ") has no common name that could be an identity";
  } else if (certificate.IsExpired(now) && !wire::GuardIsOff("certificate")) {
    // It was valid when the connection was made.
    peer->refusal = "the certificate of '" + certificate.common_name + "' expired on " +
                    transport::DateText(certificate.not_after);
  } else {
    peer->identity = certificate.common_name;
    peer->proof.expires = certificate.not_after;
  }
  return peer->refusal.empty();
}

void TakeTenant(const config::LiveConfig::Snapshot& config, Peer* peer) {
  peer->tenant = FindTenant(config, peer->identity);
  if (peer->tenant != nullptr) return;
  if (peer->identity == kLoopbackIdentity) {
    peer->refusal =
        "the server has tenants, and this connection without TLS proves no identity; list the "
        "identity 'loopback' at a tenant, or use certificates or the local socket";
  } else if (peer->identity.empty()) {
    peer->refusal =
        "the server has tenants, and a connection without TLS from another host belongs to none";
  } else {
    peer->refusal = "the server does not know the identity '" + peer->identity +
                    "'; its administrator can list it at a tenant";
  }
}

}  // namespace

std::string CertificatesOf(const grpc::ServerContext& context) {
  std::shared_ptr<const grpc::AuthContext> proof = context.auth_context();
  std::string all;
  // Of what OpenSSL calls a server's peer's chain the peer's own is no part.
  for (const char* name :
       {GRPC_X509_PEM_CERT_PROPERTY_NAME, GRPC_X509_PEM_CERT_CHAIN_PROPERTY_NAME}) {
    if (proof == nullptr) break;
    for (grpc::string_ref pem : proof->FindPropertyValues(name)) all.append(pem.data(), pem.size());
  }
  return all;
}

Peer PeerOf(const grpc::ServerContext& context, const config::LiveConfig::Snapshot& config) {
  Peer peer;
  peer.address = PlainAddress(context.peer());
  std::vector<grpc::string_ref> pem;
  std::shared_ptr<const grpc::AuthContext> proof = context.auth_context();
  if (proof != nullptr) pem = proof->FindPropertyValues(GRPC_X509_PEM_CERT_PROPERTY_NAME);
  if (!pem.empty()) return HolderOf(CertificatesOf(context), peer.address, config);
  std::string problem;
  auto address = transport::ParseAddress(peer.address, &problem);
  if (address && transport::IsLoopback(*address)) peer.identity = kLoopbackIdentity;
  TakeTenant(config, &peer);
  return peer;
}

Peer HolderOf(const std::string& chain, const std::string& address,
              const config::LiveConfig::Snapshot& config) {
  Peer peer;
  peer.address = address;
  if (!TakeCertificate(chain, &peer)) return peer;
  peer.proof.certificates = chain;
  TakeTenant(config, &peer);
  return peer;
}

Peer LocalPeer(uid_t uid, const config::LiveConfig::Snapshot& config) {
  Peer peer;
  peer.address = "uid " + std::to_string(uid);
  peer.identity = std::string(kUidPrefix) + std::to_string(uid);
  peer.uid = uid;
  if (config->tenants_size() == 0 && !wire::UidIsAllowed(uid, geteuid())) {
    peer.refusal = "without tenants the server's local socket is for its own user; list 'uid:" +
                   std::to_string(uid) + "' at a tenant";
  } else {
    TakeTenant(config, &peer);
  }
  return peer;
}

}  // namespace longwire::daemon
