// What the signer decides: which requests get a certificate. It knows no sockets and no clock of
// its own; all of it is one thread's.
#pragma once

#include <chrono>
#include <ctime>
#include <functional>
#include <string>

#include "link/certificates/authority.h"
#include "link/certificates/enrolment.h"
#include "server/signer/invitations.h"
#include "server/signer/rate_limit.h"
#include "server/signer/revocations.h"

namespace longwire::signer {

// Longer than any delay in handing an invitation over.
inline constexpr uint32_t kMaxInvitationSeconds = 7 * 24 * 3600;

struct Settings {
  certificates::Issued authority;
  int days = 365;             // that a certificate is valid
  std::string state_file;     // of the invitations
  std::string issued_folder;  // of the certificates that were signed, each as SERIAL.crt
  std::string revoked_file;
};

// Who asks, as the handshake has shown.
struct Caller {
  std::string address{};        // "192.0.2.7"; of an IPv6 address its network, "2001:db8::/64"
  X509* certificate = nullptr;  // the caller has the key to it; null if none was shown
  std::string problem{};        // what is wrong with it; empty if it is a client's of the authority
};

struct Now {
  std::time_t wall;
  RateLimit::Time steady;
};

class Signer {
 public:
  // A line for the log.
  using Log = std::function<void(bool refused, const std::string& line)>;

  Signer(Settings settings, Log log);

  // False with a sentence: the authority or the state cannot be used.
  bool Start(std::string* sentence);

  certificates::Answer Handle(const certificates::Request& request, const Caller& caller, Now now);
  // Of an administrator; `port` is where the signer listens.
  certificates::InviteAnswer Invite(const certificates::InviteRequest& request, uint16_t port,
                                    Now now);

 private:
  certificates::Answer Join(const certificates::Request& request, const Caller& caller, Now now);
  certificates::Answer Renew(const certificates::Request& request, const Caller& caller, Now now);
  certificates::Answer Sign(EVP_PKEY* key, const std::string& name, const Caller& caller, Now now);
  certificates::Answer Refuse(const Caller& caller, Now now, const std::string& problem);
  bool Record(const std::string& certificate, std::string* sentence) const;
  void ForgetExpired() const;

  const Settings settings_;
  const Log log_;
  transport::CertificatePointer authority_;
  wire::Digest fingerprint_{};
  Invitations invitations_;
  const Revocations revocations_;
  RateLimit wrong_secrets_;  // by address
  RateLimit signatures_;     // by identity
  RateLimit log_lines_;      // of refusals, by address
};

}  // namespace longwire::signer
