// What a server of ours shows and asks for in a TLS handshake.
#pragma once

#include <string>

#include "link/certificates/tls_exchange.h"

namespace longwire::certificates {

// TLS 1.3 that shows `certificate` (PEM, the own one first, then those that signed it) and asks for
// the client's, which one of `authorities` (PEM) has to have signed. Null if OpenSSL does not take
// them.
TlsContext MakeServerContext(const std::string& certificate, const std::string& key,
                             const std::string& authorities);

}  // namespace longwire::certificates
