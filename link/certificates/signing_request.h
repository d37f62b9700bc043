// Certificate requests (PKCS#10, DER): by one a client shows that it has the private half of the
// key that it wants certified.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "link/certificates/certificate.h"

namespace longwire::certificates {

// Signed by the key, PEM. It carries no name: the signer knows whom it certifies.
std::optional<std::string> MakeSigningRequest(const std::string& key, std::string* sentence);

// The public key of a request; null with a sentence if the bytes are no request or more than one,
// if its own key did not sign it, or if the key is not on P-256. Only the key's point is taken;
// names, attributes and extensions of the request have no effect.
transport::KeyPointer KeyOfRequest(std::span<const std::byte> request, std::string* sentence);

}  // namespace longwire::certificates
