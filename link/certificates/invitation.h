// The line that invites a user: ADDRESS/AUTHORITY/SECRET. The address is the signer's, AUTHORITY
// the SHA-256 of the authority's certificate, by which the client knows the signer, and SECRET what
// the signer knows the client by. No character of it means anything to a shell, but for the
// brackets of an IPv6 address.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "link/certificates/address.h"
#include "wire/sha256.h"

namespace longwire::certificates {

// Beside the daemon (7411) and, as its page proposes, the metrics (7412).
inline constexpr uint16_t kSignerPort = 7413;
// The one name in the signer's own certificate. The signer alone can issue one for it, and no host
// has it: .invalid is reserved (RFC 2606).
inline constexpr const char* kSignerName = "signer.longwire.invalid";

// 32 random bytes. The first eight say which invitation it is and are not secret.
using Secret = wire::Digest;

struct Invitation {
  transport::Address signer;
  wire::Digest authority;
  Secret secret;

  std::string Line() const;
};

// nullopt with a sentence.
std::optional<Invitation> ParseInvitation(std::string_view line, std::string* sentence);

// SHA-256 of a certificate in PEM; nullopt if it is none.
std::optional<wire::Digest> Fingerprint(const std::string& certificate);

}  // namespace longwire::certificates
