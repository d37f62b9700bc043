// Why a connection does not come about: gRPC says only that it does not.
#pragma once

#include <chrono>
#include <string>

#include "link/transport/address.h"
#include "link/transport/tls_files.h"

namespace longwire::transport {

// Connects once as gRPC does and says in a sentence what is wrong with TLS between this client and
// the server; `material` is nullptr when this client has no certificate. Empty when nothing is, or
// when nobody answers there in time.
std::string DiagnoseTls(const Address& server, const TlsMaterial* material,
                        std::chrono::milliseconds patience);

// What becomes of a plain connection: gRPC's own reason says so with some pollers only.
enum class Knocked { kTaken, kRefused, kNoWay, kSilent, kUnknownName };
Knocked KnockAt(const Address& server, std::chrono::milliseconds patience);

}  // namespace longwire::transport
